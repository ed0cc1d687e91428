package host

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"pbuild/engine/run"
)

var errWindows = errors.New("host: commands cannot be run on Windows; plan, report and reading work")

// Init does nothing: there are no sandboxes here.
func Init() {}

func (s *session) execute(context.Context, *spec) (*run.Result, error) { return nil, errWindows }

type process struct{}

func startInit(*spec, [2]*os.File) (*process, error) { return nil, errWindows }

func (*process) reply() (*reply, error) { return nil, errWindows }
func (*process) close()                 {}

func executable(string) error                  { return errWindows }
func isWhiteout(fs.FileInfo) bool              { return false }
func isOpaque(string) bool                     { return false }
func setOpaque(string) error                   { return nil }
func reflink(_, _ *os.File) error              { return errors.ErrUnsupported }
func ctime(fi fs.FileInfo) int64               { return fi.ModTime().UnixNano() }
func copyData(*os.File, *os.File, int64) error { return errors.ErrUnsupported }
func allocated(fi fs.FileInfo) int64           { return fi.Size() }
func hardLinks(fs.FileInfo) uint64             { return 1 }
func tryLock(*os.File) error                   { return nil }
func waitLock(context.Context, *os.File) error { return nil }
func ownDir(dir string) error                  { return os.MkdirAll(dir, 0o700) }
func syncFS(string) error                      { return nil }
func isCrossDevice(error) bool                 { return true }

// InPlace cannot run anything here.
type InPlace struct{}

func (*InPlace) Run(context.Context, *run.Command, string, []string) (*run.Result, error) {
	return nil, errWindows
}
