package stats

import (
	"cmp"
	"math"
	"slices"
)

// McNemarExact is the two-sided p-value for b pairs that only the first solved and c that only the second solved: under the null hypothesis b is
// Binomial(b+c, 1/2). Agresti, Categorical Data Analysis (2002), section 10.1.4. It is 1 where nothing differs.
func McNemarExact(b, c int) float64 {
	return math.Min(1, 2*binomialCDF(min(b, c), b+c, 0.5))
}

// Holm adjusts p-values for that many tests, so that each compared with alpha keeps the family-wise error at alpha. The order is kept.
// Holm, Scandinavian Journal of Statistics 6 (1979) 65-70.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out := make([]float64, len(p))
	most := 0.0
	for i, at := range order {
		most = math.Max(most, math.Min(1, float64(len(p)-i)*p[at]))
		out[at] = most
	}
	return out
}
