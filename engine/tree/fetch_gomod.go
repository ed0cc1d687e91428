package tree

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"pbuild/engine/digest"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
)

// A GoMod is a module version; Sum ("h1:...") is verified if it is not empty.
type GoMod struct{ Path, Version, Sum string }

// FetchGoMod brings a module's zip through `go mod download -json`, and returns its tree and the sum that was seen. A zip without go.mod gets the one that
// the proxy gives with it. The user's proxy, checksum database and module cache are used. A version that does not exist and a sum that differs are *Bad.
func (r *Repo) FetchGoMod(ctx context.Context, m GoMod) (tree digest.Digest, sum string, err error) {
	tree, sum, err = r.fetchGoMod(ctx, m)
	if err != nil {
		return digest.Digest{}, "", fmt.Errorf("tree: fetch module %s@%s: %w", m.Path, m.Version, err)
	}
	return tree, sum, nil
}

// A download is what `go mod download -json` prints.
type download struct{ Path, Version, Error, GoMod, Zip, Sum string }

func (r *Repo) fetchGoMod(ctx context.Context, m GoMod) (tree digest.Digest, sum string, err error) {
	if err := module.Check(m.Path, m.Version); err != nil {
		return tree, "", badf("%v", err)
	}
	if m.Sum != "" && !strings.HasPrefix(m.Sum, "h1:") {
		return tree, "", badf("sum %q does not begin with h1:", m.Sum)
	}
	d, err := r.goModDownload(ctx, m)
	if err != nil {
		return tree, "", err
	}
	// The zip in the cache may have been changed since go looked at it.
	sum, err = dirhash.HashZip(d.Zip, dirhash.Hash1)
	if err != nil {
		return tree, "", fmt.Errorf("read the module cache: %w", err)
	}
	if want := m.Sum; sum != d.Sum || want != "" && sum != want {
		if want == "" {
			want = d.Sum
		}
		return tree, "", badf("the sum of the zip is %s, not %s", sum, want)
	}
	tree, err = r.moduleTree(ctx, m, d)
	return tree, sum, err
}

// lasting are words of go's that say that trying again cannot help; a proxy that is a directory has what it has.
var lasting = []string{"reading file://", "404 Not Found", "410 Gone", "not found", "unknown revision", "invalid version", "checksum mismatch", "SECURITY ERROR", "malformed", "disallowed version string", "no matching versions"}

func (r *Repo) goModDownload(ctx context.Context, m GoMod) (*download, error) {
	dir, err := r.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	// go does not tell whether a server sends anything, so what is limited is the whole.
	within := 10 * r.stall
	timed, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(timed, "go", "mod", "download", "-json", m.Path+"@"+m.Version)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GO111MODULE=on", "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local", "GIT_TERMINAL_PROMPT=0")
	OwnGroup(cmd)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &limited{&problems, 64 << 10}
	err = runGroup(cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if timed.Err() != nil {
		return nil, fmt.Errorf("go mod download: it was not done within %s", within)
	}
	var d download
	if json.Unmarshal(out.Bytes(), &d) == nil && d.Error == "" && d.Zip != "" && err == nil {
		return &d, nil
	}
	text := d.Error
	if text == "" {
		text = strings.TrimSpace(problems.String())
	}
	if text == "" && err != nil {
		text = err.Error()
	}
	text = r.clean(strings.ReplaceAll(text, "\n", "; "))
	if slices.ContainsFunc(lasting, func(w string) bool { return strings.Contains(text, w) }) && !errors.Is(err, exec.ErrNotFound) {
		return nil, badf("%s", text)
	}
	return nil, fmt.Errorf("go mod download: %s", text)
}

// moduleTree unpacks a module's zip, whose names all begin with path@version/.
func (r *Repo) moduleTree(ctx context.Context, m GoMod, d *download) (digest.Digest, error) {
	var none digest.Digest
	z, err := zip.OpenReader(d.Zip)
	if err != nil {
		return none, fmt.Errorf("read the module cache: %w", err)
	}
	defer z.Close()
	u := newUnpacker(ctx, r, 0)
	defer u.im.abort()
	for _, f := range z.File {
		name, ok := strings.CutPrefix(f.Name, m.Path+"@"+m.Version+"/")
		if !ok {
			return none, badf("entry %q is outside %s@%s/", f.Name, m.Path, m.Version)
		}
		if err := u.zipEntry(f, name); err != nil {
			return none, err
		}
	}
	if _, ok := u.entries["go.mod"]; !ok {
		content, err := os.ReadFile(d.GoMod)
		if err != nil {
			return none, fmt.Errorf("read the module cache: %w", err)
		}
		if err := u.file("go.mod", modeFile, int64(len(content)), bytes.NewReader(content)); err != nil {
			return none, err
		}
	}
	return u.finish()
}
