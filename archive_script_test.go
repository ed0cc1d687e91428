package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptPack writes a gzipped tar, and sets SHA256 to its digest. An entry is `NAME`, whose content is its name, a link `NAME->TARGET`, or `NAME:SIZE`, which says
// a size that it does not have.
func scriptPack(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: pack FILE ENTRY...")
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	claimed := false
	for _, arg := range args[1:] {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: arg, Mode: 0o644, Size: int64(len(arg))}
		if name, target, ok := strings.Cut(arg, "->"); ok {
			h = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
		} else if name, size, ok := strings.Cut(arg, ":"); ok {
			h.Name, claimed = name, true
			_, err := fmt.Sscan(size, &h.Size)
			ts.Check(err)
		}
		ts.Check(w.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte(arg[:min(int64(len(arg)), h.Size)]))
			ts.Check(err)
		}
	}
	if !claimed {
		ts.Check(w.Close())
	}
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o666))
	ts.Setenv("SHA256", fmt.Sprintf("%x", sha256.Sum256(b.Bytes())))
}
