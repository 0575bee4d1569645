package lifeos

import (
	"fmt"
	"slices"
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

// openSequence returns the tree, which is read from its file when it is first used.
func (s *System) openSequence() *sequence {
	if q := &s.sequence; q.file == "" {
		s.loadSequence(sequenceFile)
	}
	return &s.sequence
}

// The file of the tree.
const (
	sequenceFile    = "b:sequence.dat" // unless a script names another one
	sequenceHead    = "sequences 1"
	maxSequenceFile = 256 << 10 // bytes
)

// loadSequence takes the tree of a file in place of the present one, and reports whether there was one; from now on the tree is stored there (part of PLEO-SEQ-08).
func (s *System) loadSequence(name string) bool {
	s.sequence = sequence{file: name}
	file, err := s.readFile(name, maxSequenceFile)
	if err == nil {
		s.sequence.nodes, err = readSequences(file)
	}
	s.sequence.init()
	if err != nil {
		s.log(Info, LogSeq, "read %s: %v", name, err)
	}
	return err == nil
}

// appendSequences appends the file of a tree: its version, and a line for each node with its depth, sensor and action, children after their parent.
func appendSequences(dst []byte, nodes []sequenceNode) []byte {
	dst = append(dst, sequenceHead+"\n"...)
	var walk func(n, depth int)
	walk = func(n, depth int) {
		for _, c := range nodes[n].children {
			dst = fmt.Appendf(dst, "%d %d %d\n", depth, nodes[c].id, nodes[c].action)
			walk(c, depth+1)
		}
	}
	if len(nodes) > 0 {
		walk(0, 1)
	}
	return dst
}

// readSequences returns the tree of a file. An error names the line.
func readSequences(file []byte) ([]sequenceNode, error) {
	nodes := []sequenceNode{{action: -1}}
	path := []int{0} // the nodes from the root to the one of the line before
	n := 0
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSuffix(line, "\n")
		if n++; n == 1 {
			if line != sequenceHead {
				return nil, fmt.Errorf("sequences: line 1: %.40q, want %q", line, sequenceHead)
			}
			continue
		}
		var depth int
		var id, action int32
		if k, err := fmt.Sscanf(line, "%d %d %d", &depth, &id, &action); err != nil || k != 3 || depth < 1 || depth > len(path) || action < -1 || len(nodes) >= maxSequence {
			return nil, fmt.Errorf("sequences: line %d: %.40q, want a depth from 1 to %d, a sensor and an action, and at most %d lines", n, line, len(path), maxSequence)
		}
		parent := path[depth-1]
		if slices.ContainsFunc(nodes[parent].children, func(c int) bool { return nodes[c].id == id }) {
			return nil, fmt.Errorf("sequences: line %d: sensor %d occurs twice", n, id)
		}
		nodes = append(nodes, sequenceNode{id: id, action: action})
		nodes[parent].children = append(nodes[parent].children, len(nodes)-1)
		path = append(path[:depth], len(nodes)-1)
	}
	if n == 0 {
		return nil, fmt.Errorf("sequences: an empty file, want %q", sequenceHead)
	}
	return nodes, nil
}

// sequenceNatives are those of sequences.
func sequenceNatives() []Native {
	with := func(f func(e *env, q *sequence) int32) func(*env) int32 {
		return func(e *env) int32 { return f(e, e.s.openSequence()) }
	}
	return []Native{
		{"Sequence", "sequence_move_next(sensor_name: sensor)", with(func(e *env, q *sequence) int32 { return q.learn(e.Arg(0)) })},
		{"Sequence", "bool: sequence_peek_next(sensor_name: sensor)", with(func(e *env, q *sequence) int32 { return truth(q.child(e.Arg(0)) != 0) })}, // PLEO-SEQ-04
		{"Sequence", "bool: sequence_check_next(sensor_name: sensor)", with(func(e *env, q *sequence) int32 {
			moved := q.follow(e.Arg(0))
			if moved {
				e.s.hit()
			}
			return truth(moved)
		})},
		{"Sequence", "sequence_set_action(action)", with(func(e *env, q *sequence) int32 { // PLEO-SEQ-06
			q.nodes[q.at].action = max(e.Arg(0), -1)
			return 0
		})},
		{"Sequence", "sequence_get_action()", with(func(_ *env, q *sequence) int32 { return q.nodes[q.at].action })},
		{"Sequence", "bool: sequence_reset(bool: commit = false)", with(func(e *env, q *sequence) int32 { // PLEO-SEQ-07
			q.at, q.depth = 0, 0
			return truth(!e.flag(0) || e.s.writeFile(q.file, appendSequences(nil, q.nodes)) == nil)
		})},
		{"Sequence", "bool: sequence_set_file(const file_name[])", func(e *env) int32 { return truth(e.s.loadSequence(e.text(0))) }},
		{"Sequence", "sequence_print_file()", with(func(e *env, q *sequence) int32 {
			file, err := e.s.readFile(q.file, maxSequenceFile)
			if err != nil {
				e.s.log(Info, LogSeq, "read %s: %v", q.file, err)
				return 0
			}
			e.s.print(string(file))
			return 1
		})},
		{"Sequence", "sequence_print_tree()", with(func(e *env, q *sequence) int32 { e.s.print(q.String()); return 0 })},
	}
}
