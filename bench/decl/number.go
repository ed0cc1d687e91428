package decl

import (
	"math"
	"math/big"
	"strconv"
)

// Precision is how many bits a number of the language has: some 150 digits.
const Precision = 512

// exactInts are the whole numbers below it, all of which a float64 can hold.
const exactInts = 1 << 53

// A Decimal is a number that is not a whole one of less than 2^53. Those are float64, for speed; together they make the language's numbers exact, and each has one form.
type Decimal struct{ *big.Float }

// String is the shortest decimal that is d, without an exponent.
func (d Decimal) String() string {
	if d.IsInt() && d.MantExp(nil) <= int(d.Prec()) { // all its digits count
		i, _ := d.Int(nil)
		return i.String()
	}
	// Where it has few digits, as most have, a float64 finds them in a tenth of the time; what it finds is proved.
	v, _ := d.Float64()
	short := strconv.FormatFloat(v, 'f', -1, 64)
	if f, _, err := big.ParseFloat(short, 10, d.Prec(), big.ToNearestEven); err == nil && f.Cmp(d.Float) == 0 {
		return short
	}
	return d.Text('f', -1)
}

func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// NumberOf is f as a value: float64 or Decimal.
func NumberOf(f *big.Float) any {
	if v, accuracy := f.Float64(); accuracy == big.Exact && v == math.Trunc(v) && math.Abs(v) < exactInts {
		return v + 0 // of the two zeros that which has no sign
	}
	return Decimal{f}
}

// ParseNumber reads a number in decimal; false if it is none, or one out of range.
func ParseNumber(s string) (any, bool) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil && -exactInts < v && v < exactInts {
		return float64(v), true
	}
	if v, err := strconv.ParseFloat(s, 64); err != nil || math.IsInf(v, 0) {
		return nil, false // before its exponent costs anything
	}
	f, _, err := big.ParseFloat(s, 10, Precision, big.ToNearestEven)
	if err != nil || !InRange(f) {
		return nil, false
	}
	return NumberOf(f), true
}

// InRange says whether f is neither infinite nor of a size that no float64 has: its text could be of any length.
func InRange(f *big.Float) bool {
	v, _ := f.Float64()
	return !math.IsInf(v, 0) && (v != 0 || f.Sign() == 0)
}
