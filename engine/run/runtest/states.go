package runtest

import (
	"errors"
	"fmt"
	"sync"

	"pbuild/engine/digest"
	"pbuild/engine/run"
)

var noTree digest.Digest

func states(h *harness) {
	h.sub("a chain of five", func(h *harness) {
		tree := h.trees.Add(map[string]string{"src": "one", "dir/old": "x"})
		h.ok(keep("1", sh("echo 1 >$HOME/1")))
		c := keep("2", from("1", tree, sh("echo junk >junk; echo 2 >$HOME/2; rm $HOME/1")))
		c.Keep.Workspace = run.FromNowhere
		h.ok(c)
		h.ok(keep("3", from("2", tree, sh("ls; cat src >built; rm -r dir; mkdir dir; echo new >dir/new; ls $HOME"))))
		c = keep("4", from("3", h.trees.Add(map[string]string{"src": "gold"}), sh("cat src; ls; echo 4 >$HOME/4")))
		c.Start.Fresh = true
		c.Keep.Workspace = run.FromStart
		h.want(h.ok(c), "goldsrc\n")
		c = keep("5", from("4", h.trees.Add(map[string]string{"src": "two", "dir/old": "x"}), sh("cat src built; ls dir; ls $HOME; echo build >$HOME/5; mkdir -p $HOME/c/d; echo c >$HOME/c/d/e")))
		c.Keep.Home, c.Keep.HomePaths = run.FromStart, []string{"c/d", "absent"}
		h.want(h.ok(c), "twoonenew\n2\n4\n")
		h.want(h.ok(from("5", noTree, sh("cat src built; cd $HOME; find . -type f | sort"))), "twoone./2\n./4\n./c/d/e\n")
		for i := range 5 {
			if !h.runner.Has(key(fmt.Sprint(i + 1))) {
				h.Errorf("state %d is not there", i+1)
			}
		}
	})
	h.sub("a run changes no state but the one it keeps", func(h *harness) {
		h.ok(keep("base", sh("echo a >a; echo h >$HOME/h")))
		h.ok(from("base", noTree, sh("echo b >>a; rm $HOME/h; echo more >more")))
		h.want(h.ok(from("base", noTree, sh("cat a $HOME/h; ls"))), "a\nh\na\n")
	})
	h.sub("only a command that passed is kept", func(h *harness) {
		h.run(keep("failed", sh("exit 1")))
		if h.runner.Has(key("failed")) {
			h.Error("a failed command was kept")
		}
		c := keep("always", sh("echo kept >f; exit 3"))
		c.Keep.Always = true
		h.run(c)
		h.want(h.ok(from("always", noTree, sh("cat f"))), "kept\n")
	})
	loss(h)
}

// loss demands that what is not there is said to be lost, and that states are known by their content.
func loss(h *harness) {
	h.sub("a lost state is said", func(h *harness) {
		_, err := h.try(from("never", noTree, sh("true")))
		var lost *run.LostState
		if !errors.As(err, &lost) || lost.State != key("never") {
			h.Errorf("got %v", err)
		}
		if h.runner.Has(key("never")) {
			h.Error("it has what never was")
		}
	})
	h.sub("the manifest is of content", func(h *harness) {
		a := h.run(keep("a", sh("echo x >f; ln -s f l; mkdir -p d; echo y >d/g; date +%N >$HOME/t")))
		b := h.run(keep("b", sh("mkdir -p d; echo y >d/g; sleep 0.05; ln -s f l; echo x >f")))
		if a.Manifest.IsZero() || a.Manifest != b.Manifest {
			h.Errorf("equal workspaces: %s, %s", a.Manifest, b.Manifest)
		}
		seen := map[digest.Digest]string{a.Manifest: "the first"}
		for i, script := range []string{"echo z >f", "chmod +x f", "rm l; ln -s d l", "rm d/g", "mv f e", "echo q >d/g"} {
			m := h.run(keep(fmt.Sprint("d", i), from("a", noTree, sh(script)))).Manifest
			if other, ok := seen[m]; ok {
				h.Errorf("after %s the manifest is that of %s", script, other)
			}
			seen[m] = script
		}
		if m := h.run(keep("same", from("a", noTree, sh("touch f; chmod 600 d/g; rm f; echo x >f")))).Manifest; m != a.Manifest {
			h.Errorf("times and bits that no tree has are in the manifest")
		}
	})
	sharing(h)
}

// sharing demands that runs that share a state do not disturb each other.
func sharing(h *harness) {
	h.sub("equal states are made once", func(h *harness) {
		var wg sync.WaitGroup
		outs := make([]string, 4)
		for i := range outs {
			wg.Go(func() {
				res, err := h.try(keep("shared", sh("sleep 0.3; head -c 8 /dev/urandom | od -An -tx1")))
				if err != nil {
					h.Error(err)
					return
				}
				outs[i], _, _ = h.parse(res)
			})
		}
		wg.Wait()
		for _, o := range outs[1:] {
			h.want(o, outs[0])
		}
	})
	h.sub("many start from one state at once", func(h *harness) {
		h.ok(keep("base", sh("echo base >f")))
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				res, err := h.try(from("base", noTree, sh(fmt.Sprintf("echo %d >>f; sleep 0.05; cat f", i))))
				if err != nil {
					h.Error(err)
					return
				}
				out, _, _ := h.parse(res)
				h.want(out, fmt.Sprintf("base\n%d\n", i))
			})
		}
		wg.Wait()
	})
	h.sub("read-only directories can be kept and used", func(h *harness) {
		h.ok(keep("mod", sh("mkdir -p $HOME/mod/a; echo m >$HOME/mod/a/f; chmod -R a-w $HOME/mod")))
		h.want(h.ok(from("mod", noTree, sh("cat $HOME/mod/a/f; chmod -R u+w $HOME/mod; rm -r $HOME/mod; ls $HOME"))), "m\n")
		h.want(h.ok(from("mod", noTree, sh("cat $HOME/mod/a/f"))), "m\n")
	})
	h.sub("a state has the same paths as what starts from it", func(h *harness) {
		c := keep("paths", sh("pwd >where; echo $HOME >$HOME/where"))
		h.ok(c)
		h.ok(from("paths", noTree, sh(`test "$(cat where)" = "$(pwd)" && test "$(cat $HOME/where)" = "$HOME"`)))
		h.ok(keep("paths2", from("paths", noTree, sh("true"))))
		h.ok(from("paths2", noTree, sh(`test "$(cat where)" = "$(pwd)" && test "$(cat $HOME/where)" = "$HOME"`)))
	})
}
