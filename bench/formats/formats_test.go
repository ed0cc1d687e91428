package formats

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestReadsEveryForm(t *testing.T) {
	const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\u00e9\r\n+\u2028 \U0001F600\n"
	quoted, _ := json.Marshal(patch)
	q := string(quoted)
	for name, text := range map[string]string{
		"list.json":        "[\n {\"instance_id\": \"b-1\", \"model_name_or_path\": \"m\", \"model_patch\": " + q + "},\n {\"instance_id\":\"a-2\",\"model_patch\":null}]\n",
		"preds.json":       "{\"b-1\": {\"model_name_or_path\": \"m\", \"instance_id\": \"b-1\",\n \"model_patch\": " + q + "},\n \"a-2\": {\"model_patch\": \"\"}}",
		"lines.jsonl":      "\xef\xbb\xbf{\"instance_id\":\"b-1\",\"model_name_or_path\":\"m\",\"model_patch\":" + q + ",\"extra\":[1]}\r\n\r\n{\"instance_id\":\"a-2\",\"model_patch\":null}",
		"swebenchpro.json": "[{\"instance_id\":\"a-2\",\"patch\":\"\",\"prefix\":\"x\"},{\"instance_id\":\"b-1\",\"model_name_or_path\":\"m\",\"patch\":" + q + "}]",
	} {
		p, diags := ParsePredictions(name, []byte(text))
		if len(diags) > 0 || len(p) != 2 {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		a, b := p[0], p[1]
		if b.Instance != "b-1" || string(b.Patch) != patch || b.Line != map[string]int{"list.json": 2, "preds.json": 1, "lines.jsonl": 1, "swebenchpro.json": 1}[name] {
			t.Errorf("%s: %+v", name, b)
		}
		if a.Instance != "a-2" || len(a.Patch) != 0 {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if p, diags := ParsePredictions("none.json", []byte("[]")); len(diags) > 0 || len(p) != 0 {
		t.Errorf("an empty list: %v", diags)
	}
	if p, diags := ParsePredictions("none.jsonl", nil); len(diags) > 0 || len(p) != 0 {
		t.Errorf("an empty jsonl: %v", diags)
	}
}

func TestDiagnostics(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"p.json", "", "p.json:1:1: Empty predictions file: It holds no JSON. An empty list is []."},
		{"p.json", "\n 3", "p.json:2:1: Not a predictions file: "},
		{"p.json", "[\n{\"instance_id\":\"a\",\"model_patch\":\"\"},\n{\"instance_id\":", "p.json:3:1: Not JSON: unexpected end of JSON input."},
		{"p.json", "[\n{\"instance_id\":\"a\",\n\"model_patch\":\"\"},\n x]", "p.json:4:1: Not JSON: invalid character 'x'"},
		{"p.jsonl", "[{\"instance_id\":\"a\",\"model_patch\":\"\"}]", "p.jsonl:1:1: Not a prediction: Here is a list, and to be an object"},
		{"p.json", "[]\n[]", "p.json:2:1: Not JSON: Something follows"},
		{"p.json", "{\"instance_id\":\"a\",\"model_patch\":\"\"}", "p.json:1:1: Not a predictions file: It is one prediction."},
		{"p.json", "{\"a\":{\"model_patch\":\"\"},\n\"a\":{\"model_patch\":\"x\"}}", "p.json:2:1: Instance predicted twice: \"a\" is predicted at p.json:1 and again at p.json:2. Keep one."},
		{"p.json", "{\"a\":{\"instance_id\":\"b\",\"model_patch\":\"\"}}", "p.json:1:1: Contradicting instance: The key is \"a\", and instance_id \"b\"."},
		{"p.json", "{\"a\":\"diff\"}", "p.json:1:1: Not a prediction: "},
		{"p.jsonl", "{\"instance_id\":\"a\",\"model_patch\":\"\"}\n\n{\"instance_id\":\"a\",\"model_patch\":\"\"}\n", "p.jsonl:3:1: Instance predicted twice: \"a\" is predicted at p.jsonl:1 and again at p.jsonl:3."},
		{"p.jsonl", "{\"model_patch\":\"\"}", "p.jsonl:1:1: Prediction without instance: "},
		{"p.jsonl", "{\"instance_id\":\"a\"}", "p.jsonl:1:1: Prediction without patch: "},
		{"p.jsonl", "{\"instance_id\":\"a\",\"model_patch\":[1]}", "p.jsonl:1:1: Patch is no text: model_patch of \"a\": it is to be a string or null"},
		{"p.jsonl", "\n{\"instance_id\":\"a\",\"model_patch\":\"\\ud800\"}", "p.jsonl:2:1: Patch is no text: model_patch of \"a\": it holds \\ud800, half"},
		{"p.jsonl", "{\"instance_id\":7}", "p.jsonl:1:1: Not a prediction: "},
		{"p.jsonl", "[{}]", "p.jsonl:1:1: Not a prediction: "},
	} {
		p, diags := ParsePredictions(c.name, []byte(c.text))
		if p != nil || len(diags) == 0 || !strings.HasPrefix(diags[0].Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, diags, c.want)
		}
	}
	_, diags := ParsePredictions("p.jsonl", []byte("{\n{\"instance_id\":\"\"}\n{\"instance_id\":\"a\",\"model_patch\":\"\"}"))
	if len(diags) != 2 || diags[0].Range.Line != 1 || diags[1].Range.Line != 2 {
		t.Errorf("every bad line is to be named: %v", diags)
	}
}

// Whatever bytes a patch holds come out again, although JSON is meant for text.
func TestPatchBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		patch := rapid.SliceOf(rapid.Byte()).Draw(t, "patch")
		var q bytes.Buffer
		for _, c := range patch {
			switch {
			case c == '"' || c == '\\':
				q.Write([]byte{'\\', c})
			case c < ' ':
				q.WriteString(`\u00`)
				q.WriteByte("0123456789abcdef"[c>>4])
				q.WriteByte("0123456789abcdef"[c&15])
			default:
				q.WriteByte(c)
			}
		}
		p, diags := ParsePredictions("p.jsonl", []byte(`{"instance_id":"a","model_patch":"`+q.String()+`"}`))
		if len(diags) > 0 || !bytes.Equal(p[0].Patch, patch) {
			t.Fatalf("%q became %v, %v", patch, p, diags)
		}
	})
}

func TestUnquoteSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`"\ud83d\ude00"`: "\U0001F600", `"\ufffd"`: "\uFFFD", `"\b\f\/\"\\\t\r\n"`: "\b\f/\"\\\t\r\n", `null`: "",
	} {
		if got, err := unquote(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{`"\ud83dx"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\ud83d\ud83d"`, `"\ude00"`} {
		if got, err := unquote(json.RawMessage(in)); err == nil {
			t.Errorf("%s: %q", in, got)
		}
	}
}

func FuzzParsePredictions(f *testing.F) {
	for _, s := range []string{`[{"instance_id":"a","model_patch":"x"}]`, `{"a":{"model_patch":null}}`, "{\"instance_id\":\"a\",\"patch\":\"\\u00e9\\ud83d\"}\n", `[`, `{"a":`, "\xef\xbb\xbf[]", `{"a":{}}x`} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, lines bool) {
		name := "p.json"
		if lines {
			name = "p.jsonl"
		}
		p, diags := ParsePredictions(name, []byte(s))
		if p != nil && diags.HasErrors() {
			t.Fatalf("%v with %v", p, diags)
		}
		for _, d := range diags {
			if d.Range.Line < 1 || d.Range.Line > strings.Count(s, "\n")+1 {
				t.Fatalf("line %d of %d", d.Range.Line, strings.Count(s, "\n")+1)
			}
		}
	})
}
