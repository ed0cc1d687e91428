package cli

import (
	"cmp"
	"maps"
	"slices"
)

// sortedKeys is the order in which a map is shown.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
