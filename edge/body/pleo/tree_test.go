package pleo

import (
	"testing"

	"kennel/edge/body/pleo/lifeos"
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

// TestJointKinds: the joints have the ids, ranges and speeds of LifeOS (PLEO-JNT-01, PLEO-JNT-13).
func TestJointKinds(t *testing.T) {
	for j := range lifeos.JointCount {
		k := j.Kind()
		if got, want := joints[j], (joint{joints[j].path, "JOINT_" + k.Name, k.Min, k.Max, k.Speed}); got != want {
			t.Errorf("joint %d: %+v, want %+v", j, got, want)
		}
	}
}
