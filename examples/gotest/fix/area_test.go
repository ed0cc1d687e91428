package area

import "testing"

func TestSquare(t *testing.T) {
	if got := Rect(2, 2); got != 4 {
		t.Fatalf("Rect(2, 2) = %d", got)
	}
}

func TestRect(t *testing.T) {
	if got := Rect(2, 3); got != 6 {
		t.Fatalf("Rect(2, 3) = %d", got)
	}
}
