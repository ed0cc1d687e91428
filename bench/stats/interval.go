// Package stats has the few statistics that reports of verdicts need: intervals for rates and tests for paired results. It knows no verdict.
// Every formula names its source, and tests compare with published or independently computed values.
package stats

import "math"

// An Interval is a two-sided confidence interval, of a proportion in [0, 1].
type Interval struct{ Low, High float64 }

// Wilson is the score interval without continuity correction for k successes of n at the given confidence (0.95).
// E. B. Wilson, JASA 22 (1927) 209-212; Newcombe, Statistics in Medicine 17 (1998) 857-872, method 3. It is [0, 1] for n = 0.
func Wilson(k, n int, confidence float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	z := normalQuantile(1 - (1-confidence)/2)
	p, N := float64(k)/float64(n), float64(n)
	centre := p + z*z/(2*N)
	spread := z * math.Sqrt(p*(1-p)/N+z*z/(4*N*N))
	scale := 1 + z*z/N
	i := Interval{(centre - spread) / scale, (centre + spread) / scale}
	if k == 0 {
		i.Low = 0
	}
	if k == n {
		i.High = 1
	}
	return i
}

// binomialCDF is P(X <= k) for X ~ Binomial(n, p), summed in logarithms.
func binomialCDF(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n || p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(logChoose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return math.Min(sum, 1)
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// normalQuantile is the z with P(Z <= z) = p.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
