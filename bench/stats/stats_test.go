package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Values marked scipy or statsmodels were computed with SciPy 1.17.1 and statsmodels 0.15.0.

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %.10g, want %.10g", what, got, want)
	}
}

// Newcombe (1998), table I, gives methods 3 (score) and 5 (exact) to four digits for the first four; statsmodels' proportion_confint, methods wilson
// and beta, gives all digits.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		k, n                    int
		wilsonLow, wilsonHigh   float64
		clopperLow, clopperHigh float64
	}{
		{81, 263, 0.2552885199, 0.366209577, 0.2527367456, 0.3676219226},
		{15, 148, 0.06238639953, 0.1604872417, 0.05784401008, 0.1616504903},
		{0, 20, 0, 0.1611251581, 0, 0.168433471},
		{1, 29, 0.006113214293, 0.1717552188, 0.0008726468836, 0.1776442955},
		{29, 29, 0.8830302015, 1, 0.8805551309, 1},
		{8, 61, 0.06798077275, 0.2380188019, 0.05836050584, 0.2421586887},
		{250, 500, 0.4563412653, 0.5436587347, 0.4552855693, 0.5447144307},
		{3, 10, 0.1077912674, 0.6032218525, 0.06673951118, 0.6524528501},
	} {
		w, e := Wilson(c.k, c.n, 0.95), ClopperPearson(c.k, c.n, 0.95)
		near(t, "Wilson low", w.Low, c.wilsonLow, 1e-9)
		near(t, "Wilson high", w.High, c.wilsonHigh, 1e-9)
		near(t, "Clopper-Pearson low", e.Low, c.clopperLow, 1e-9)
		near(t, "Clopper-Pearson high", e.High, c.clopperHigh, 1e-9)
	}
	w := Wilson(8, 61, 0.99) // statsmodels
	near(t, "Wilson 99% low", w.Low, 0.055584379098, 1e-9)
	near(t, "Wilson 99% high", w.High, 0.279078609071, 1e-9)
	if (Wilson(0, 0, 0.95) != Interval{0, 1}) || (ClopperPearson(0, 0, 0.95) != Interval{0, 1}) {
		t.Error("nothing tried says nothing")
	}
}

func TestIntervalsHoldTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		p := float64(k) / float64(n)
		w, e := Wilson(k, n, 0.95), ClopperPearson(k, n, 0.95)
		for _, i := range []Interval{w, e} {
			if i.Low < 0 || i.High > 1 || i.Low > p || i.High < p {
				t.Fatalf("%d of %d: %v does not hold %v", k, n, i, p)
			}
		}
		m := Wilson(n-k, n, 0.95) // counting failures mirrors the interval
		if math.Abs(m.Low-(1-w.High)) > 1e-12 || math.Abs(m.High-(1-w.Low)) > 1e-12 {
			t.Fatalf("%d of %d: %v is not the mirror of %v", n-k, n, m, w)
		}
	})
}

// The pair (150, 86) is Agresti (2002), table 10.1 (approval ratings); all p-values are statsmodels' mcnemar.
func TestMcNemar(t *testing.T) {
	for _, c := range []struct {
		b, c                    int
		exact, statistic, chi2P float64
	}{
		{150, 86, 3.7159361395713866e-05, 16.81779661016949, 4.114562281345944e-05},
		{12, 5, 0.143463134765625, 2.1176470588235294, 0.1456100953968629},
		{6, 16, 0.052478790283203125, 3.6818181818181817, 0.055008833629265896},
		{40, 61, 0.046044066929342785, 3.9603960396039604, 0.04658274252301569},
		{1, 0, 1, 0, 1},
		{0, 0, 1, 0, 1},
		{3, 3, 1, 0, 1}, // the correction takes |b-c| no lower than 0
	} {
		near(t, "exact", McNemarExact(c.b, c.c), c.exact, 1e-11)
		s, p := McNemar(c.b, c.c)
		near(t, "statistic", s, c.statistic, 1e-12)
		near(t, "p", p, c.chi2P, 1e-12)
	}
}

// Darwin's maize (Fisher, The Design of Experiments, 1935, section 17) has W = 24 and p = 0.0413; the depression scores of Hollander and Wolfe
// (1999), table 3.1, have W = 5 and p = 0.0391 two-sided. The others are scipy.stats.wilcoxon.
func TestWilcoxon(t *testing.T) {
	sequence := func(n int) []float64 {
		var d []float64
		for i := 1; i <= n; i++ {
			x := 0.1 * float64(i)
			if i%3 == 0 {
				x = -x
			}
			d = append(d, x)
		}
		return d
	}
	for _, c := range []struct {
		name  string
		d     []float64
		w, p  float64
		exact bool
	}{
		{"maize", []float64{6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}, 24, 0.041259765625, true},
		{"depression", []float64{0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01}, 5, 0.0390625, true},
		{"ties and a zero", []float64{1, 1, -1, 2, 2, 0, 3, -2, 4, 4, -1, 5}, 11, 0.04875841941501396, false},
		{"50", sequence(50), 408, 0.02616696817119646, true},
		{"60", sequence(60), 630, 0.03590012321587811, false},
		{"none", []float64{0, 0}, 0, 1, true},
	} {
		r := Wilcoxon(c.d)
		near(t, c.name+": W", r.W, c.w, 1e-9)
		near(t, c.name+": p", r.P, c.p, 1e-10)
		if r.Exact != c.exact {
			t.Errorf("%s: exact = %v", c.name, r.Exact)
		}
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

// The ten subjects of the usual example for Fleiss' kappa (0.210), and statsmodels' fleiss_kappa.
func TestFleissKappa(t *testing.T) {
	k, err := FleissKappa([][]int{{0, 0, 0, 0, 14}, {0, 2, 6, 4, 2}, {0, 0, 3, 5, 6}, {0, 3, 9, 2, 0}, {2, 2, 8, 1, 1},
		{7, 7, 0, 0, 0}, {3, 2, 6, 3, 0}, {2, 5, 3, 2, 2}, {6, 5, 2, 1, 0}, {0, 2, 2, 3, 7}})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Fleiss", k, 0.20993070442195522, 1e-12)
	for _, bad := range [][][]int{nil, {{1, 0}}, {{2, 0}, {1, 0}}, {{2, 0}, {2}}, {{3, 0}, {3, 0}}} {
		if _, err := FleissKappa(bad); err == nil {
			t.Errorf("%v has no kappa", bad)
		}
	}
}

// Cohen (1960), table 1 (0.492 of 200), and statsmodels' cohens_kappa.
func TestCohenKappa(t *testing.T) {
	for _, c := range []struct {
		table [][]int
		want  float64
	}{
		{[][]int{{88, 14, 18}, {10, 40, 10}, {2, 6, 12}}, 0.49152542372881347},
		{[][]int{{20, 5}, {10, 15}}, 0.4},
	} {
		k, err := CohenKappa(c.table)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "Cohen", k, c.want, 1e-12)
	}
	for _, bad := range [][][]int{nil, {{0}}, {{5}}, {{1, 2}}} {
		if _, err := CohenKappa(bad); err == nil {
			t.Errorf("%v has no kappa", bad)
		}
	}
}
