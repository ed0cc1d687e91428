package tree

import (
	"strings"
)

// The longest names that are laid out on every file system.
const (
	maxName = 255
	maxPath = 4000
)

// checkPath refuses a path that could not be laid out, or that would be laid out elsewhere than it says on some file system: it is empty or absolute,
// leaves the tree, or a part of it is .git as Linux, macOS or Windows would read it.
func checkPath(p string) error {
	switch {
	case p == "":
		return badf("a path is empty")
	case len(p) > maxPath:
		return badf("path %q is longer than %d bytes", p[:40]+"...", maxPath)
	case strings.IndexByte(p, 0) >= 0:
		return badf("path %q has a zero byte", p)
	case strings.HasPrefix(p, "/"):
		return badf("path %q is absolute", p)
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "" || part == ".":
			return badf("path %q has an empty part", p)
		case part == "..":
			return badf("path %q leaves the tree", p)
		case len(part) > maxName:
			return badf("path %q has a part that is longer than %d bytes", p[:40]+"...", maxName)
		case isGit(part):
			return badf("path %q enters .git", p)
		}
	}
	return nil
}

// isGit says whether some file system takes name for .git: case is ignored, HFS+ drops code points, NTFS has the short name git~1, streams after a
// colon, and drops dots and spaces at the end; a backslash parts directories there.
func isGit(name string) bool {
	for part := range strings.SplitSeq(name, `\`) {
		part = strings.Map(func(c rune) rune {
			if ignoredByHFS(c) {
				return -1
			}
			return c
		}, part)
		part, _, _ = strings.Cut(part, ":")
		part = strings.ToLower(strings.TrimRight(part, ". "))
		if part == ".git" || part == "git~1" {
			return true
		}
	}
	return false
}

// ignoredByHFS lists what HFS+ skips when it compares names: joiners, directional marks, deprecated formatting, the byte order mark.
func ignoredByHFS(c rune) bool {
	return c >= 0x200c && c <= 0x200f || c >= 0x202a && c <= 0x202e || c >= 0x206a && c <= 0x206f || c == 0xfeff
}

// checkLink refuses a target that no link can have.
func checkLink(path string, target []byte) error {
	switch {
	case len(target) == 0:
		return badf("link %q has no target", path)
	case len(target) > maxPath:
		return badf("the target of link %q is longer than %d bytes", path, maxPath)
	case strings.IndexByte(string(target), 0) >= 0:
		return badf("the target of link %q has a zero byte", path)
	}
	return nil
}
