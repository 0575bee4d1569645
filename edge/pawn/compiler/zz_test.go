package compiler

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestZZ(t *testing.T) {
	f := os.Getenv("ZZ")
	if f == "" {
		t.Skip()
	}
	src, _ := os.ReadFile(f)
	o, _ := strconv.Atoi(os.Getenv("ZO"))
	v, _ := strconv.Atoi(os.Getenv("ZV"))
	r := Compile(f, src, Options{Optimise: o, Debug: 1, Overlay: v, Prefix: "default.inc", Include: []string{os.Getenv("ZI")}, Open: os.ReadFile})
	for _, m := range r.Messages {
		fmt.Println(m)
	}
	if r.Program != nil {
		b, err := r.Program.Append(nil)
		if err != nil {
			fmt.Println(err)
		}
		os.WriteFile(os.Getenv("ZZO"), b, 0o666)
	}
}
