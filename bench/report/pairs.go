package report

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"pbuild/bench/stats"
	"pbuild/bench/verdict"
)

// A Pair compares two candidates over the cells that both ran: same instance, sample and group.
type Pair struct {
	First, Second string
	Cells         int
	OnlyFirst     int     // resolved by the first alone
	OnlySecond    int     // and by the second alone
	P             float64 // McNemar's exact test
	Holm          float64 // the same, adjusted for all pairs of the report
}

// ran says that a cell tells of its candidate: it was neither excluded nor skipped, nor lost to the world.
func ran(w verdict.Word) bool {
	return w != verdict.Excluded && w != verdict.CellSkipped && w != verdict.CellInfra && w != verdict.CellProvider
}

// Pairs compares every two candidates, in order of their lines: agents with their models, over all groups.
func (t *Table) Pairs() []Pair {
	resolved := map[string]map[string]bool{} // candidate, then cell
	var names []string
	for i := range t.all {
		r := &t.all[i]
		if !ran(r.Outcome) {
			continue
		}
		name := r.Agent
		if r.Model != nil {
			name += " with " + *r.Model
		}
		if resolved[name] == nil {
			resolved[name] = map[string]bool{}
			names = append(names, name)
		}
		resolved[name][r.Instance+"\x00"+strconv.Itoa(r.Sample)] = r.Outcome == verdict.Resolved
	}
	slices.Sort(names)
	var pairs []Pair
	var ps []float64
	for i, first := range names {
		for _, second := range names[i+1:] {
			p := Pair{First: first, Second: second}
			for cell, a := range resolved[first] {
				b, both := resolved[second][cell]
				switch {
				case !both:
					continue
				case a && !b:
					p.OnlyFirst++
				case b && !a:
					p.OnlySecond++
				}
				p.Cells++
			}
			p.P = stats.McNemarExact(p.OnlyFirst, p.OnlySecond)
			pairs, ps = append(pairs, p), append(ps, p.P)
		}
	}
	for i, p := range stats.Holm(ps) {
		pairs[i].Holm = p
	}
	return pairs
}

func (t *Table) pairs(b *bytes.Buffer) {
	pairs := t.Pairs()
	if len(pairs) == 0 {
		return
	}
	var rows [][]string
	for _, p := range pairs {
		rows = append(rows, []string{p.First, p.Second, strconv.Itoa(p.Cells), strconv.Itoa(p.OnlyFirst), strconv.Itoa(p.OnlySecond),
			fmt.Sprintf("%.4f", p.P), fmt.Sprintf("%.4f", p.Holm)})
	}
	fmt.Fprintf(b, "## Pairs\n\nMcNemar's exact test over the cells that both candidates ran; the last column is adjusted for the number of pairs (Holm).\n\n")
	table(b, []string{"first", "second", "cells", "only first resolved", "only second resolved", "p", "p, Holm"}, rows)
}
