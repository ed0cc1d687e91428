package decl

// Nearest is the one of names that is most like name, "" where none is like it: of names that are equally like it the first in order.
func Nearest(name string, names []string) string {
	best, least := "", (len(name)+1)/3+1 // one letter in two, two in five
	for _, n := range names {
		if d := distance(name, n, least+1); d < least || d == least && best != "" && n < best {
			best, least = n, d
		}
	}
	return best
}

// distance is the number of letters to insert, drop, change, or swap with their neighbours (Damerau, CACM 7(3), 1964; no letter is edited twice),
// or limit if it is that or more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return min(row[len(b)], limit)
}
