package stats

import (
	"errors"
	"fmt"
)

// FleissKappa is the agreement of raters beyond chance: counts[i][j] is how many raters put subject i into category j; every subject has the
// same number of raters, two or more. Fleiss, Psychological Bulletin 76 (1971) 378-382, equations 1-7. Agreement on a single category
// everywhere leaves nothing to chance and is an error.
func FleissKappa(counts [][]int) (float64, error) {
	if len(counts) == 0 {
		return 0, errors.New("stats: no subject was rated")
	}
	raters := 0
	for _, c := range counts[0] {
		raters += c
	}
	if raters < 2 {
		return 0, fmt.Errorf("stats: agreement needs two raters, not %d", raters)
	}
	totals := make([]float64, len(counts[0]))
	observed := 0.0
	for i, row := range counts {
		sum, pairs := 0, 0
		if len(row) != len(totals) {
			return 0, fmt.Errorf("stats: subject %d has %d categories, the first %d", i, len(row), len(totals))
		}
		for j, c := range row {
			sum += c
			pairs += c * (c - 1)
			totals[j] += float64(c)
		}
		if sum != raters {
			return 0, fmt.Errorf("stats: subject %d has %d raters, the first %d", i, sum, raters)
		}
		observed += float64(pairs) / float64(raters*(raters-1))
	}
	observed /= float64(len(counts))
	chance := 0.0
	for _, t := range totals {
		share := t / float64(len(counts)*raters)
		chance += share * share
	}
	return beyondChance(observed, chance)
}

// CohenKappa is the agreement of two raters: table[i][j] counts subjects that the first put into category i and the second into j.
// Cohen, Educational and Psychological Measurement 20 (1960) 37-46, equation 1.
func CohenKappa(table [][]int) (float64, error) {
	n, agree := 0, 0
	rows, columns := make([]int, len(table)), make([]int, len(table))
	for i, row := range table {
		if len(row) != len(table) {
			return 0, errors.New("stats: the table is not square")
		}
		for j, c := range row {
			n += c
			rows[i] += c
			columns[j] += c
		}
		agree += row[i]
	}
	if n == 0 {
		return 0, errors.New("stats: no subject was rated")
	}
	chance := 0.0
	for i := range table {
		chance += float64(rows[i]) * float64(columns[i]) / float64(n) / float64(n)
	}
	return beyondChance(float64(agree)/float64(n), chance)
}

func beyondChance(observed, chance float64) (float64, error) {
	if chance >= 1 {
		return 0, errors.New("stats: all ratings are in one category, so that kappa is not defined")
	}
	return (observed - chance) / (1 - chance), nil
}
