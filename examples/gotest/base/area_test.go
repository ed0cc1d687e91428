package area

import "testing"

func TestSquare(t *testing.T) {
	if got := Rect(2, 2); got != 4 {
		t.Fatalf("Rect(2, 2) = %d", got)
	}
}
