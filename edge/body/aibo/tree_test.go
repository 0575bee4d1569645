package aibo

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"kennel/edge/robot/robottest"
)

// TestTree: the tree of all models lists exactly the rows of the mapping and our own parts, and the tree of each model exactly the rows that name it.
func TestTree(t *testing.T) {
	rows := append(robottest.Rows(t, "testdata/mapping.txt"), robottest.Rows(t, "testdata/own.txt")...)
	for _, m := range append([]Model{Every}, Models...) {
		t.Run(m.String(), func(t *testing.T) {
			tree, err := Tree(m)
			if err != nil {
				t.Fatal(err)
			}
			robottest.Mapping(t, tree, slices.DeleteFunc(slices.Clone(rows), func(r robottest.Row) bool {
				return m != Every && !slices.Contains(strings.Split(r.More, ", "), strconv.Itoa(int(m)))
			}))
			// The joints that section 9 counts for each model.
			want := map[Model]int{ERS110: 18, ERS210: 20, ERS220: 15, ERS310: 15, ERS7: 20, Every: 21}[m]
			if got := len(tree.Actuators()); got != want {
				t.Errorf("%d joints, want %d", got, want)
			}
		})
	}
}
