package runtest

import (
	"maps"
	"slices"
	"strings"

	"pbuild/engine/digest"
	"pbuild/engine/run"
	"pbuild/engine/task"
)

func lay(h *harness) {
	h.sub("a tree is laid with all its modes", func(h *harness) {
		tree := h.trees.Add(map[string]string{"a": "x", "bin/run": "#!/bin/sh\necho ran\n", "l": "link:a", "dir/sub/f": "deep", "tilde~": "t", "with space": "s"})
		h.want(h.ok(from("", tree, sh("cat l; bin/run; readlink l; cat dir/sub/f 'with space'; find . -type f | wc -l"))), "xran\na\ndeeps5\n")
	})
	h.sub("only the difference is written, and it is newer", func(h *harness) {
		x := h.trees.Add(map[string]string{"same": "s", "changed": "1", "gone/f": "g", "file": "f", "dir/f": "d", "l": "link:same"})
		y := h.trees.Add(map[string]string{"same": "s", "changed": "2", "new/f": "n", "file/f": "f", "dir": "d", "l": "link:changed"})
		h.ok(keep("x", from("", x, sh("echo o >object; echo mine >same; touch -d '2001-01-01' same"))))
		out := h.ok(from("x", y, sh("cat same changed new/f file/f dir l; ls; test changed -nt object && test dir -nt object && test new/f -nt object && echo newer; test object -nt same && echo untouched")))
		h.want(out, "mine\n2nfd2changed\ndir\nfile\nl\nnew\nobject\nsame\nnewer\nuntouched\n")
	})
	h.sub("make builds again what a patch touches", func(h *harness) {
		h.needs("make")
		rules := "all: a.o b.o\n%.o: %.c\n\t@cp $< $@; echo built $@\n"
		x := h.trees.Add(map[string]string{"Makefile": rules, "a.c": "a", "b.c": "b"})
		y := h.trees.Add(map[string]string{"Makefile": rules, "a.c": "patched", "b.c": "b"})
		h.want(h.ok(keep("built", from("", x, sh("make")))), "built a.o\nbuilt b.o\n")
		h.want(h.ok(from("built", x, sh("make -q && echo nothing to do"))), "nothing to do\n")
		h.want(h.ok(from("built", y, sh("make; cat a.o"))), "built a.o\npatched")
	})
	h.sub("a file of equal size is laid in another second", func(h *harness) {
		x, y := h.trees.Add(map[string]string{"a.py": "1"}), h.trees.Add(map[string]string{"a.py": "2"})
		h.ok(keep("second", from("", x, sh("stat -c %Y a.py >was"))))
		h.want(h.ok(from("second", y, sh(`test "$(stat -c %Y a.py)" != "$(cat was)" && echo differs; touch now; test a.py -nt now || echo not in the future`))), "differs\nnot in the future\n")
	})
	h.sub("what a command dated in the future is older than what is laid", func(h *harness) {
		x, y := h.trees.Add(map[string]string{"a.c": "1"}), h.trees.Add(map[string]string{"a.c": "2!"})
		h.ok(keep("future", from("", x, sh("echo o >a.o; touch -d 2100-01-01 a.o"))))
		h.want(h.ok(from("future", y, sh("test a.c -nt a.o && echo newer"))), "newer\n")
	})
	h.sub("a link in the way is not followed", func(h *harness) {
		x := h.trees.Add(map[string]string{"d/f": "1", "d/g": "g"})
		y := h.trees.Add(map[string]string{"d/f": "2"})
		h.ok(keep("links", from("", x, sh("mkdir $HOME/out; echo home >$HOME/out/f; echo g >$HOME/out/g; rm -r d; ln -s $HOME/out d"))))
		h.want(h.ok(from("links", y, sh("cat d/f $HOME/out/f $HOME/out/g; test -L d || echo directory"))), "2home\ng\ndirectory\n")
	})
	h.sub("files are laid last", func(h *harness) {
		tree := h.trees.Add(map[string]string{"a": "tree"})
		c := from("", tree, sh("cat a sub/b $HOME/.x/c"))
		c.Start.Files = map[string][]byte{"a": []byte("1"), "sub/b": []byte("2"), "~/.x/c": []byte("3")}
		h.want(h.ok(c), "123")
		c = from("", tree, sh(`cat "$OF_HOME" "$OF_WORKSPACE"; echo "$OTHER"; cd /; cat "$OF_HOME"`))
		c.Start.Files = map[string][]byte{"sub/b": []byte("2"), "~/.x/c": []byte("3")}
		c.Env["OF_HOME"], c.Env["OF_WORKSPACE"], c.Env["OTHER"] = "~/.x/c", "sub/b", "~/.x"
		h.want(h.ok(c), "32~/.x\n3")
		c.Start.Files = map[string][]byte{"../a": nil}
		if _, err := h.try(c); err == nil {
			h.Error("a file was laid outside")
		}
	})
	h.sub("a variable that names a laid file holds its path", func(h *harness) {
		c := sh(`cat "$HOMEFILE" "$FILE"; echo "$OTHER"`)
		c.Start.Files = map[string][]byte{"f": []byte("2"), "~/d/g": []byte("1")}
		maps.Copy(c.Env, map[string]string{"FILE": "f", "HOMEFILE": "~/d/g", "OTHER": "~/f"})
		h.want(h.ok(c), "12~/f\n")
	})
	h.sub("a fresh checkout takes only HOME from the state", func(h *harness) {
		tree := h.trees.Add(map[string]string{"a": "tree"})
		h.ok(keep("used", from("", tree, sh("echo junk >junk; echo changed >a; echo h >$HOME/h"))))
		c := from("used", tree, sh("cat a; ls . $HOME | grep -v :"))
		c.Start.Fresh = true
		h.want(h.ok(c), "treea\n\nh\n")
	})
}

func reset(h *harness) {
	tree := map[string]string{"a_test.go": "original", "a.go": "code", "testdata/x": "data", "conf/l": "link:x", "setup.cfg": "cfg", "t/conftest.py": "good"}
	h.sub("content is restored, additions are removed, whoever made them", func(h *harness) {
		x := h.trees.Add(tree)
		h.ok(keep("built", from("", x, sh(`echo forged >a_test.go; echo more >b_test.go; echo code2 >a.go; mkdir -p deep/testdata testdata/sub; echo d >deep/testdata/y; echo z >testdata/sub/z
			mkdir conftest.py; echo evil >conftest.py/__init__.py; rm conf/l; ln -s /etc/passwd conf/l; rm setup.cfg; echo evil >u.pth; ln -s a.go link_test.go; echo keep >kept`))))
		c := from("built", x, sh("cat a_test.go a.go; readlink conf/l; cat setup.cfg; find . | sort"))
		c.Start.Reset = []string{"**/*_test.go", "**/testdata/**", "**/conftest.py", "conf/*", "setup.cfg", "**/*.pth"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "originalcode2\nx\ncfg"+strings.Join([]string{".", "./a.go", "./a_test.go", "./conf", "./conf/l", "./deep", "./kept", "./setup.cfg", "./t", "./t/conftest.py", "./testdata", "./testdata/x"}, "\n")+"\n")
		want := []string{"a_test.go", "b_test.go", "conf/l", "conftest.py", "deep/testdata", "link_test.go", "setup.cfg", "testdata/sub", "u.pth"}
		if !slices.Equal(res.Reset, want) {
			h.Errorf("reset %q\nwant  %q", res.Reset, want)
		}
	})
	h.sub("what is as in the tree is not touched", func(h *harness) {
		x := h.trees.Add(tree)
		h.ok(keep("built", from("", x, sh("touch -d 2001-01-01 a_test.go"))))
		c := from("built", x, sh("test a.go -nt a_test.go && echo old"))
		c.Start.Reset = []string{"**/*"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "old\n")
		if len(res.Reset) != 0 {
			h.Errorf("reset %q", res.Reset)
		}
	})
	h.sub("what Python would load in the place of a protected source goes", func(h *harness) {
		x := h.trees.Add(map[string]string{"t/test_a.py": "a", "t/test_b.py": "b", "t/test_c.py": "c", "t/test_c/__init__.py": "the tree's", "a.py": "code"})
		h.ok(keep("shadows", from("", x, sh(`mkdir t/test_a t/__pycache__ __pycache__ a; echo evil >t/test_a/__init__.py; ln -s ../a t/test_b; echo evil >t/test_b.abi3.so; echo evil >t/test_c/__init__.py
			echo evil >t/__pycache__/test_a.cpython-312.pyc; echo mine >__pycache__/a.cpython-312.pyc; echo mine >a/__init__.py`))))
		c := from("shadows", x, sh("cat t/test_c/__init__.py; echo; find . -type f | sort"))
		c.Start.Reset = []string{"t/*.py"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "the tree's\n./__pycache__/a.cpython-312.pyc\n./a.py\n./a/__init__.py\n./t/test_a.py\n./t/test_b.py\n./t/test_c.py\n./t/test_c/__init__.py\n")
		if want := []string{"t/test_a/__init__.py", "t/test_b", "t/test_b.abi3.so", "t/test_c/__init__.py"}; !slices.Equal(res.Reset, want) {
			h.Errorf("reset %q, want %q", res.Reset, want)
		}
	})
	h.sub("exemptions, and globs that hold only where the tree has nothing", func(h *harness) {
		x := h.trees.Add(tree)
		h.ok(keep("built", from("", x, sh("echo 1 >a_test.go; echo 2 >setup.cfg; mkdir vendor; echo v >vendor/v; mkdir -p testdata; echo t >testdata/n"))))
		c := from("built", x, sh("cat a_test.go setup.cfg; ls vendor testdata 2>&1 | grep -v :"))
		c.Start.Reset = []string{"*_test.go", "~setup.cfg", "~vendor/**", "testdata/**"}
		c.Start.Exempt = []string{"a_test.go", "testdata/n"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "1\n2\nn\nx\n")
		if !slices.Equal(res.Reset, []string{"vendor"}) {
			h.Errorf("reset %q", res.Reset)
		}
	})
	h.sub("a glob that only restores leaves what is added", func(h *harness) {
		x := h.trees.Add(tree)
		h.ok(keep("built", from("", x, sh("echo 1 >setup.cfg; mkdir sub; echo 2 >sub/setup.cfg; rm t/conftest.py"))))
		c := from("built", x, sh("cat setup.cfg sub/setup.cfg t/conftest.py"))
		c.Start.Reset = []string{"=**/setup.cfg", "=**/conftest.py", "~=**/*.go"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "cfg2\ngood")
		if want := []string{"setup.cfg", "t/conftest.py"}; !slices.Equal(res.Reset, want) {
			h.Errorf("reset %q, want %q", res.Reset, want)
		}
	})
	h.sub("exceptions", func(h *harness) {
		x := h.trees.Add(tree)
		h.ok(keep("built", from("", x, sh("echo 1 >setup.cfg; mkdir lib; echo p >lib/a.pth; echo p >a.pth; echo evil >t/conftest.py; echo evil >a_test.go; echo evil >b_test.go"))))
		c := from("built", x, sh("cat setup.cfg t/conftest.py a_test.go b_test.go; ls *.pth lib"))
		c.Start.Reset = []string{"**/*.pth", "setup.cfg", "**/conftest.py", "*_test.go", "!=lib/**", "!=t/**", "!a_test.go", "!b_test.go"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "cfggoodevil\nevil\nlib:\na.pth\n")
		if want := []string{"a.pth", "setup.cfg", "t/conftest.py"}; !slices.Equal(res.Reset, want) {
			h.Errorf("reset %q, want %q", res.Reset, want)
		}
	})
	h.sub("what stands where a protected path is laid is recorded", func(h *harness) {
		x := h.trees.Add(tree)
		with := map[string]string{"n_test.go": "new", "l_test.go": "new", "d/m_test.go": "new", "o_test.go": "new", "b.go": "new"}
		maps.Copy(with, tree)
		maps.Copy(with, map[string]string{"a_test.go": "hidden", "t/conftest.py": "hidden"})
		y := h.trees.Add(with)
		h.ok(keep("built", from("", x, sh(`echo forged >n_test.go; ln -s a.go l_test.go; ln -s t d; echo b >b.go; mv t evil; ln -s evil t`))))
		c := from("built", y, sh("cat a_test.go n_test.go l_test.go d/m_test.go o_test.go b.go t/conftest.py"))
		c.Start.Reset = []string{"**/*_test.go", "**/conftest.py"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		h.want(out, "hidden"+strings.Repeat("new", 5)+"hidden")
		want := []string{"d/m_test.go", "evil/conftest.py", "l_test.go", "n_test.go", "t/conftest.py"}
		if !slices.Equal(res.Reset, want) {
			h.Errorf("reset %q, want %q", res.Reset, want)
		}
	})
	h.sub("directories, files and links in each other's place", func(h *harness) {
		x := h.trees.Add(map[string]string{"p/f": "f", "p/d/g": "g"})
		h.ok(keep("built", from("", x, sh("echo evil >$HOME/g; rm p/f; mkdir p/f; echo in >p/f/in; rm -r p/d; ln -s $HOME p/d"))))
		c := from("built", x, sh("cat p/f p/d/g $HOME/g; ls $HOME"))
		c.Start.Reset = []string{"p/**"}
		h.want(h.ok(c), "fgevil\ng\n")
	})
}

func reports(h *harness) {
	h.sub("what the command makes is collected", func(h *harness) {
		c := sh("mkdir -p out; echo one >out/a.xml; : >empty; printf '\\377' >b")
		c.Reports = []string{"out/a.xml", "empty", "b", "missing", "none/missing"}
		res := h.run(c)
		empty, made := res.Reports["empty"]
		if len(res.Reports) != 3 || string(res.Reports["out/a.xml"]) != "one\n" || !made || len(empty) != 0 || string(res.Reports["b"]) != "\xff" {
			h.Errorf("got %q", res.Reports)
		}
		if len(res.Refused) != 0 {
			h.Errorf("refused %q", res.Refused)
		}
	})
	h.sub("one that was there before is removed", func(h *harness) {
		tree := h.trees.Add(map[string]string{"in/tree.xml": "forged"})
		h.ok(keep("built", from("", tree, sh("echo forged >r.xml"))))
		c := from("built", tree, sh("ls -R"))
		c.Reports = []string{"r.xml", "in/tree.xml"}
		res := h.run(c)
		out, _, _ := h.parse(res)
		if len(res.Reports) != 0 || strings.Contains(out, ".xml") {
			h.Errorf("got %q, %s", res.Reports, out)
		}
	})
	h.sub("forged ones are refused", func(h *harness) {
		c := keep("forge", sh("mkdir real; echo forged >real/r.xml; echo forged >old.xml; touch -d 2001-01-01 old.xml"))
		h.ok(c)
		c = from("forge", noTree, sh("ln -s real/r.xml a.xml; ln -s real d; ln real/r.xml hard.xml; mv old.xml moved.xml; mkfifo pipe.xml; mkdir dir.xml; head -c 67108865 /dev/zero >big.xml; ln -s /etc/passwd passwd.xml"))
		c.Reports = []string{"a.xml", "d/r.xml", "hard.xml", "moved.xml", "pipe.xml", "dir.xml", "big.xml", "passwd.xml"}
		res := h.run(c)
		if len(res.Reports) != 0 {
			for p := range res.Reports {
				h.Errorf("%s was believed", p)
			}
		}
		for _, p := range c.Reports {
			if res.Refused[p] == "" {
				h.Errorf("%s: no reason", p)
			}
		}
	})
	h.sub("a link that was laid where a report goes does not lead out", func(h *harness) {
		h.ok(keep("link", sh("mkdir $HOME/safe; echo safe >$HOME/safe/r; ln -s $HOME/safe out")))
		c := from("link", noTree, sh("cat $HOME/safe/r"))
		c.Reports = []string{"out/r"}
		h.want(h.ok(c), "safe\n")
	})
}

func changed(h *harness) {
	h.sub("every kind of change is seen, and no other", func(h *harness) {
		x := h.trees.Add(map[string]string{"same": "s", "edit": "1", "gone": "g", "mode": "m", "dir/a": "a", "dir/b": "b", "l": "link:same", "tofile/x": "x", "todir": "f", "rewritten": "r"})
		y := h.trees.Add(map[string]string{"same": "s", "edit": "1", "gone": "g", "mode": "m", "dir/a": "a", "dir/b": "b", "l": "link:same", "tofile/x": "x", "todir": "f", "rewritten": "r", "laid": "y"})
		h.ok(keep("built", from("", x, sh("echo prepared >prepared"))))
		c := from("built", y, sh(`echo 2 >edit; rm gone; chmod +x mode; rm -r dir; mkdir dir; echo new >dir/new; printf b >dir/b; rm l; ln -s edit l
			rm -r tofile; echo f >tofile; rm todir; mkdir todir; echo f >todir/f; printf r >tmp; mv tmp rewritten; touch same; mkfifo pipe; mkdir empty; mkdir .git; echo x >.git/HEAD; chmod 700 prepared; chmod 644 prepared`))
		c.Changes = true
		c.Start.Files = map[string][]byte{"problem": []byte("given")}
		res := h.run(c)
		var got []string
		for _, ch := range res.Changes {
			got = append(got, strings.TrimSpace(strings.Join([]string{ch.Path, modes[ch.Mode], string(ch.Content)}, " ")))
		}
		want := []string{"dir/a -", "dir/new f new", "edit f 2", "gone -", "l l edit", "mode x m", "todir -", "todir/f f f", "tofile f f", "tofile/x -"}
		if !slices.Equal(got, want) {
			h.Errorf("got  %q\nwant %q", got, want)
		}
	})
	h.sub("what no tree can hold is told, and does not stop the rest", func(h *harness) {
		h.needs("truncate")
		h.needs("seq")
		c := keep("hostile", sh(`echo x >f; mkfifo pipe; truncate -s 4T holes; truncate -s 600M large
			d=$(printf 'd%.0s' $(seq 250)); for i in $(seq 20); do mkdir $d && cd -P $d; done; echo x >deep_test`))
		c.Changes = true
		res := h.run(c)
		if res.Exit != 0 || len(res.Changes) != 1 || res.Changes[0].Path != "f" {
			h.Errorf("exit %d, %d changes", res.Exit, len(res.Changes))
		}
		if got := slices.Sorted(maps.Keys(res.Skipped)); !slices.Equal(got, []string{"holes", "large", "pipe"}) {
			h.Errorf("skipped %q", res.Skipped)
		}
		tree := h.trees.Add(map[string]string{"f": "x", "holes": "h"})
		after := from("hostile", tree, sh("cat holes"))
		after.Start.Reset = []string{"**/*_test", "holes"}
		h.want(h.ok(after), "h")
	})
	h.sub("changes are told of a command that ran out of time too", func(h *harness) {
		c := sh("echo x >f; sleep 1000")
		c.Changes = true
		c.Limits.Wall = 500_000_000
		res := h.run(c)
		if res.TimedOut != "wall" || len(res.Changes) != 1 || res.Changes[0].Path != "f" {
			h.Errorf("got %+v", res)
		}
	})
}

var modes = map[uint32]string{0: "-", 0o644: "f", 0o755: "x", task.ModeLink: "l"}

func watch(h *harness) {
	globs := []string{"bin/**", "lib/*", "none/**"}
	prepared := func(h *harness) digest.Digest {
		base := h.trees.Add(map[string]string{"a": "a", "bin/own": "own"})
		h.ok(keep("prepared", from("", base, sh("mkdir -p bin lib; echo run >bin/run; echo more >bin/more; echo l >lib/l; echo o >other"))))
		return base
	}
	wants := func(h *harness, c *run.Command, want ...string) {
		h.Helper()
		c.Watch = globs
		if res := h.run(c); !slices.Equal(res.Altered, want) {
			h.Errorf("altered %q, want %q", res.Altered, want)
		}
	}
	h.sub("what a tree is laid over", func(h *harness) {
		base := prepared(h)
		wants(h, from("prepared", base, sh("true")))
		wants(h, from("prepared", h.trees.Add(map[string]string{"a": "b", "bin/own": "theirs", "bin/new": "n", "other": "x"}), sh("true")))
		wants(h, from("prepared", h.trees.Add(map[string]string{"a": "a", "bin/run": "evil"}), sh("true")), "bin/run")
		wants(h, from("prepared", h.trees.Add(map[string]string{"a": "a", "bin": "link:evil", "lib": "link:evil"}), sh("true")), "bin", "lib")
	})
	h.sub("what a command does, if that is kept", func(h *harness) {
		base := prepared(h)
		wants(h, from("prepared", base, sh("echo evil >bin/run")))
		wants(h, keep("same", from("prepared", base, sh("rm bin/run; echo run >bin/run; echo n >lib/new; echo x >other; echo own2 >bin/own"))))
		wants(h, keep("built", from("prepared", base, sh("echo evil >bin/run; rm -r lib; ln -s bin lib"))), "bin/run", "lib/l")
	})
}
