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

// McNemar is the chi-squared test with continuity correction: statistic (|b-c|-1)^2/(b+c) on one degree of freedom, and its p-value.
// Edwards, Psychometrika 13 (1948) 185-187.
func McNemar(b, c int) (statistic, p float64) {
	if b+c == 0 {
		return 0, 1
	}
	d := math.Max(0, math.Abs(float64(b-c))-1)
	statistic = d * d / float64(b+c)
	return statistic, 2 * normalTail(math.Sqrt(statistic))
}

// A SignedRank is the outcome of Wilcoxon's signed-rank test.
type SignedRank struct {
	W     float64 // the smaller of the sums of the ranks of positive and of negative differences
	N     int     // differences that are not zero
	P     float64 // two-sided
	Exact bool
}

// maxExactRank bounds n for which the null distribution is enumerated.
const maxExactRank = 50

// Wilcoxon tests paired differences for symmetry about zero. Zero differences are dropped (Wilcoxon, Biometrics Bulletin 1 (1945) 80-83).
// Without ties and up to 50 differences the p-value is exact; else it is the normal approximation with the variance corrected for ties,
// without continuity correction (Hollander and Wolfe, Nonparametric Statistical Methods (1999), section 3.1).
func Wilcoxon(differences []float64) SignedRank {
	var d []float64
	for _, x := range differences {
		if x != 0 {
			d = append(d, x)
		}
	}
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	n := len(d)
	if n == 0 {
		return SignedRank{P: 1, Exact: true}
	}
	plus, ties := 0.0, 0.0
	for i := 0; i < n; {
		j := i
		for j < n && math.Abs(d[j]) == math.Abs(d[i]) {
			j++
		}
		rank, t := float64(i+j+1)/2, float64(j-i) // the mean of ranks i+1..j
		ties += t*t*t - t
		for ; i < j; i++ {
			if d[i] > 0 {
				plus += rank
			}
		}
	}
	N := float64(n)
	r := SignedRank{W: math.Min(plus, N*(N+1)/2-plus), N: n}
	if ties == 0 && n <= maxExactRank {
		r.P, r.Exact = math.Min(1, 2*rankTail(n, int(r.W))), true
		return r
	}
	variance := N*(N+1)*(2*N+1)/24 - ties/48
	r.P = math.Min(1, 2*normalTail(math.Abs(r.W-N*(N+1)/4)/math.Sqrt(variance)))
	return r
}

// rankTail is P(W+ <= w) over the 2^n equally likely signs: the number of subsets of {1..n} with a sum of at most w, counted one rank at a time.
func rankTail(n, w int) float64 {
	ways := make([]float64, w+1)
	ways[0] = 1
	for rank := 1; rank <= n; rank++ {
		for s := w; s >= rank; s-- {
			ways[s] += ways[s-rank]
		}
	}
	sum := 0.0
	for _, x := range ways {
		sum += x
	}
	return sum / math.Exp2(float64(n))
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
