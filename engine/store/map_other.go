//go:build !unix

package store

import "os"

// mapFile reads the file.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	data, err = os.ReadFile(path)
	return data, func() error { return nil }, err
}

func viewString(b []byte) string { return string(b) }
