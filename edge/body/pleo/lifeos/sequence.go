package lifeos

import (
	"fmt"
	"strings"
)

// sequence is a tree of sensor ids that scripts learn, with an action at any node (PLEO-SEQ-01).
type sequence struct {
	nodes []sequenceNode // 0 is the root
	at    int
	depth int32
	file  string
}

type sequenceNode struct {
	id       int32
	action   int32 // -1: none
	children []int
}

// maxSequence bounds the tree.
const maxSequence = 4096

func (q *sequence) init() {
	if len(q.nodes) == 0 {
		q.nodes = []sequenceNode{{action: -1}}
	}
}

// child returns the child of the present node with an id; 0: there is none.
func (q *sequence) child(id int32) int {
	q.init()
	for _, c := range q.nodes[q.at].children {
		if q.nodes[c].id == id {
			return c
		}
	}
	return 0
}

// learn moves to the child with an id, which it adds if it is missing, and returns the depth (PLEO-SEQ-03).
func (q *sequence) learn(id int32) int32 {
	c := q.child(id)
	if c == 0 {
		if len(q.nodes) >= maxSequence {
			return q.depth
		}
		c = len(q.nodes)
		q.nodes = append(q.nodes, sequenceNode{id: id, action: -1})
		q.nodes[q.at].children = append(q.nodes[q.at].children, c)
	}
	q.at = c
	q.depth++
	return q.depth
}

// follow moves to the child with an id. If there is none it begins at the root and tries once more (PLEO-SEQ-05).
func (q *sequence) follow(id int32) bool {
	for range 2 {
		if c := q.child(id); c != 0 {
			q.at = c
			q.depth++
			return true
		}
		q.at, q.depth = 0, 0
	}
	return false
}

// hit triggers SENSOR_SEQUENCE with the action of the node that was reached (PLEO-SEQ-09).
func (s *System) hit() {
	if a := s.sequence.nodes[s.sequence.at].action; a >= 0 {
		s.trigger(s.sensors.all[SensorSequence], a)
	}
}

// String returns the tree, a node in each line.
func (q *sequence) String() string {
	q.init()
	var b strings.Builder
	var walk func(n, depth int)
	walk = func(n, depth int) {
		fmt.Fprintf(&b, "%s%d action %d\n", strings.Repeat("  ", depth), q.nodes[n].id, q.nodes[n].action)
		for _, c := range q.nodes[n].children {
			walk(c, depth+1)
		}
	}
	for _, c := range q.nodes[0].children {
		walk(c, 0)
	}
	return b.String()
}
