package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Values marked statsmodels were computed with statsmodels 0.15.0.

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %.10g, want %.10g", what, got, want)
	}
}

// Newcombe (1998), table I, gives method 3 (score) to four digits for the first four; statsmodels' proportion_confint, method wilson, gives all digits.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, 0.2552885199, 0.366209577},
		{15, 148, 0.06238639953, 0.1604872417},
		{0, 20, 0, 0.1611251581},
		{1, 29, 0.006113214293, 0.1717552188},
		{29, 29, 0.8830302015, 1},
		{8, 61, 0.06798077275, 0.2380188019},
		{250, 500, 0.4563412653, 0.5436587347},
		{3, 10, 0.1077912674, 0.6032218525},
	} {
		i := Wilson(c.k, c.n, 0.95)
		near(t, "Wilson low", i.Low, c.low, 1e-9)
		near(t, "Wilson high", i.High, c.high, 1e-9)
	}
	i := Wilson(8, 61, 0.99) // statsmodels
	near(t, "Wilson 99% low", i.Low, 0.055584379098, 1e-9)
	near(t, "Wilson 99% high", i.High, 0.279078609071, 1e-9)
	if (Wilson(0, 0, 0.95) != Interval{0, 1}) {
		t.Error("nothing tried says nothing")
	}
}

func TestWilsonHoldsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		p := float64(k) / float64(n)
		i := Wilson(k, n, 0.95)
		if i.Low < 0 || i.High > 1 || i.Low > p || i.High < p {
			t.Fatalf("%d of %d: %v does not hold %v", k, n, i, p)
		}
		m := Wilson(n-k, n, 0.95) // counting failures mirrors the interval
		if math.Abs(m.Low-(1-i.High)) > 1e-12 || math.Abs(m.High-(1-i.Low)) > 1e-12 {
			t.Fatalf("%d of %d: %v is not the mirror of %v", n-k, n, m, i)
		}
	})
}

// The pair (150, 86) is Agresti (2002), table 10.1 (approval ratings); all p-values are statsmodels' mcnemar.
func TestMcNemarExact(t *testing.T) {
	for _, c := range []struct {
		b, c int
		want float64
	}{
		{150, 86, 3.7159361395713866e-05},
		{12, 5, 0.143463134765625},
		{6, 16, 0.052478790283203125},
		{40, 61, 0.046044066929342785},
		{1, 0, 1},
		{0, 0, 1},
		{3, 3, 1},
	} {
		near(t, "p", McNemarExact(c.b, c.c), c.want, 1e-11)
	}
}

// statsmodels' multipletests, method holm.
func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005, 0.5})
	for i, want := range []float64{0.04, 0.09, 0.09, 0.025, 0.5} {
		near(t, "Holm", got[i], want, 1e-12)
	}
	if len(Holm(nil)) != 0 {
		t.Error("no test, no p-value")
	}
}
