// Package agent is the family of the parts of agentd, the program of a robot that faces the network. Each folder is one part; edge/app/agentapp wires
// them.
package agent
