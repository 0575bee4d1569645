package vector

import (
	"testing"

	"kennel/edge/robot/robottest"
)

// TestTree: the tree lists exactly the names, compact names and interfaces of the mapping.
func TestTree(t *testing.T) {
	tree, err := Tree()
	if err != nil {
		t.Fatal(err)
	}
	robottest.Mapping(t, tree, robottest.Rows(t, "testdata/mapping.txt"))
}
