package run

import "testing"

func TestShadowed(t *testing.T) {
	for _, c := range []struct {
		path     string
		link     bool
		source   string
		bytecode bool
	}{
		{"t/test_a/__init__.py", false, "t/test_a.py", false},
		{"test_a/__init__.cpython-312-x86_64-linux-gnu.so", false, "test_a.py", false},
		{"__init__.py", false, "", false},
		{"t/test_a.abi3.so", false, "t/test_a.py", false},
		{"test_a.so", false, "test_a.py", false},
		{"t/__pycache__/test_a.cpython-312-pytest-8.3.pyc", false, "t/test_a.py", true},
		{"__pycache__/conftest.cpython-312.pyc", false, "conftest.py", true},
		{"t/__pycache__/__init__.cpython-312.pyc", false, "t/__init__.py", true},
		{"t/test_a", true, "t/test_a.py", false},
		{"t/test_a", false, "", false},
		{"t/test_a.py", true, "", false},
		{"lib.sos", false, "", false},
	} {
		if source, bytecode := Shadowed(c.path, c.link); source != c.source || bytecode != c.bytecode {
			t.Errorf("%s: %q, %t", c.path, source, bytecode)
		}
	}
}
