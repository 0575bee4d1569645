// Package agent is the family of the parts of agentd, the program of a robot that faces the network. Each folder is one part, or what parts share;
// edge/app/agentapp lists them.
package agent
