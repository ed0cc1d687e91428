package hcl

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A decimal is a number as JSON and HCL write it, with its value.
type decimal struct {
	text  string
	value *big.Rat
}

// shortest is the value in full, without zeros at its end.
func (d decimal) shortest() string {
	s := d.value.FloatString(80)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// decimals draws numbers, often near each other and near what a float64 holds.
func decimals() *rapid.Generator[decimal] {
	return rapid.Custom(func(t *rapid.T) decimal {
		text := rapid.SampledFrom([]string{"0.1", "0.3", "1", "9007199254740991", "9007199254740992", "9007199254740993", "12345678901234567890", ""}).Draw(t, "near")
		if text == "" {
			text = rapid.StringMatching(`-?[1-9][0-9]{0,30}(\.[0-9]{1,30})?`).Draw(t, "number")
		} else if rapid.Bool().Draw(t, "more") && strings.Contains(text, ".") {
			text += rapid.StringMatching(`[0-9]{1,25}`).Draw(t, "digits")
		}
		if exponent := rapid.IntRange(-9, 9).Draw(t, "exponent"); exponent > 6 || exponent < -6 {
			text += fmt.Sprintf("e%d", exponent)
		}
		v, _ := new(big.Rat).SetString(text)
		return decimal{text, v}
	})
}

// A number has one value and one text, whichever way an expression takes.
func TestNumbersAreExact(t *testing.T) {
	const n = 40
	operators := map[string]func(sign int) bool{
		"==": func(s int) bool { return s == 0 }, "!=": func(s int) bool { return s != 0 }, "<": func(s int) bool { return s < 0 },
		"<=": func(s int) bool { return s <= 0 }, ">": func(s int) bool { return s > 0 }, ">=": func(s int) bool { return s >= 0 },
	}
	rapid.Check(t, func(rt *rapid.T) {
		var rows strings.Builder
		want := map[string][]string{}
		for i := range n {
			x, y := decimals().Draw(rt, "x"), decimals().Draw(rt, "y")
			id := fmt.Sprint(i)
			fmt.Fprintf(&rows, "{\"id\": %q, \"x\": %s, \"y\": %s, \"in\": {\"list\": [%s]}}\n", id, x.text, y.text, x.text)
			for op, holds := range operators {
				if holds(x.value.Cmp(y.value)) {
					want["row.x "+op+" row.y"] = append(want["row.x "+op+" row.y"], id)
				}
			}
			want["text"] = append(want["text"], x.shortest())
		}
		var config strings.Builder
		name := func(op, form string) string { return fmt.Sprintf("d%x%s", op, form) }
		for op := range operators {
			for form, left := range map[string]string{"": "row.x", "through": "(row.x + 0)", "if": "(true ? row.x : 0)", "inner": "row.in.list[0]"} {
				fmt.Fprintf(&config, "dataset %q {\n file = \"d.jsonl\"\n key = \"id\"\n where = %s %s row.y\n}\n", name(op, form), left, op)
			}
		}
		config.WriteString(`
dataset "all" {
  file = "d.jsonl"
  key  = "id"
}
task "t" {
  for_each = dataset.all
  command  = [each.value.x, "${each.value.x}", jsonencode(each.value.x), tostring(jsondecode(jsonencode(each.value.in)).list[0])]
}
agent "a" {
  for_each = dataset.all
  kind     = "command"
  command  = ["a"]
  config   = each.value.x
}
`)
		w := load(t, Options{}, "a.hcl", config.String(), "d.jsonl", rows.String()).Workspace
		for op := range operators {
			for _, form := range []string{"", "through", "if", "inner"} {
				var got []string
				d := w.Datasets[name(op, form)]
				for i := range d.Len() {
					got = append(got, d.Key(i))
				}
				if diff := cmp.Diff(want["row.x "+op+" row.y"], got); diff != "" {
					rt.Fatalf("row.x %s row.y, form %q: -want +got:\n%s\n%s", op, form, diff, &rows)
				}
			}
		}
		for i, text := range want["text"] {
			each := member(w, "all", i)
			if diff := cmp.Diff([]string{text, text, text, text}, attr(t, w, "task", "t", "command", each)); diff != "" {
				rt.Fatalf("-want +got:\n%s", diff)
			}
			b, err := json.Marshal(attr(t, w, "agent", "a", "config", each))
			if err != nil || string(b) != text {
				rt.Fatalf("config is %s, %v; want %s", b, err, text)
			}
		}
	})
}

// What is computed of rows' numbers is not rounded to a row's precision.
func TestComputedNumbersAreExact(t *testing.T) {
	w := load(t, Options{}, "a.hcl", `
dataset "d" {
  file = "d.jsonl"
  key  = "id"
}
task "t" {
  for_each = dataset.d
  command  = [each.value.a + each.value.b, each.value.a * each.value.a, each.value.f * 10 == 1, each.value.f + 0 <= 0.1, log(each.value.b + 2, 2)]
}
`, "d.jsonl", `{"id": 9007199254740993, "a": 9007199254740991, "b": 3, "f": 0.1}`).Workspace
	want := []string{"9007199254740994", "81129638414606663681390495662081", "true", "true", "2.321928094887362"}
	if diff := cmp.Diff(want, attr(t, w, "task", "t", "command", member(w, "d", 0))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
