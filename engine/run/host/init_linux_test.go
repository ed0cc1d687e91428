package host

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"

	"pbuild/engine/run/runtest"
	"pbuild/engine/task"
)

// Whoever made a program must not be able to make its failure look like the disk's.
func TestAProgramThatNamesAnInterpreterBeyondItsEnd(t *testing.T) {
	const head, offset, count = 64, 32, 56 // of an ELF file of this machine: its header's size, where that has the place and number of program headers
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := make([]byte, head)
	if _, err := file.Read(b); err != nil || b[elf.EI_CLASS] != byte(elf.ELFCLASS64) {
		t.Skip("not 64 bits: ", err)
	}
	binary.NativeEndian.PutUint64(b[offset:], head)
	binary.NativeEndian.PutUint16(b[count:], 1)
	b, err = binary.Append(b, binary.NativeEndian, elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 1 << 20, Filesz: 20})
	if err != nil {
		t.Fatal(err)
	}
	trees := runtest.NewTrees()
	r := runner(t, trees, nil)
	built := task.Key{1}
	build := after(task.Key{}, built, "cp elf program && chmod +x program")
	build.Start.Tree = trees.Add(map[string]string{"elf": string(b)})
	stdout(t, r, build)
	c := shell("")
	c.Start.State, c.Argv = built, []string{"./program"}
	if res, err := r.Run(t.Context(), c); err != nil || res.Exit != 126 {
		t.Errorf("%+v, %v", res, err)
	}
}
