package cli

import (
	"fmt"
	"strings"
)

// lineDiff shows how text changes, line by line: what goes with "-", what comes with "+", and a line of what stays around them. Formatting changes
// few lines and moves none, so lines are paired by the longest common subsequence within the part that differs.
func lineDiff(name, before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head == len(a) && head == len(b) {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n@@ line %d @@\n", name, name, head+1)
	line := func(sign, text string) {
		if text != "" {
			out.WriteString(sign + strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	if head > 0 {
		line(" ", a[head-1])
	}
	middleA, middleB := a[head:len(a)-tail], b[head:len(b)-tail]
	i, j := 0, 0
	for _, same := range commonLines(middleA, middleB) {
		for ; i < same[0]; i++ {
			line("-", middleA[i])
		}
		for ; j < same[1]; j++ {
			line("+", middleB[j])
		}
		line(" ", middleA[i])
		i, j = i+1, j+1
	}
	for ; i < len(middleA); i++ {
		line("-", middleA[i])
	}
	for ; j < len(middleB); j++ {
		line("+", middleB[j])
	}
	if tail > 0 {
		line(" ", a[len(a)-tail])
	}
	return out.String()
}

// commonLines pairs the lines of a longest common subsequence. Texts too long for the table have none.
func commonLines(a, b []string) [][2]int {
	if len(a)*len(b) > 4<<20 {
		return nil
	}
	length := make([][]int32, len(a)+1) // length[i][j]: of the subsequence of a[i:] and b[j:]
	for i := range length {
		length[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
	return out
}
