// Package robot is the structure tree: the one device model that every body appears in and everything above the drivers speaks. It
// implements the Gostai Standard Robotics API 2.3 (spec/gostai.md, sections 1 to 8).
//
// A tree is made of components, each a part of its parent (GOSTAI-TREE-01). Identical parts stand in a localizer and are told apart by
// where they are: robot.body.leg[front][left] (GOSTAI-LOC-01). A component that implements an interface is a device; it has that
// interface's slots: attributes, methods and events (GOSTAI-TREE-03). Each device also has a short name, such as kneeFL (GOSTAI-CMP-01).
//
//	slot.go         what a slot and an interface are            catalogue.go  all interfaces of the standard, and ours beside it
//	standard.go     the standard's names of components          localization.go  left, front, 3
//	node.go tree.go the tree, how to build it and walk it       path.go       from a name to nodes and slots; groups
//	compact.go      short names                                 dump.go       the tree as text
//	value.go        what slots hold                             frame.go      axes, angles, yaw, pitch, roll; drive.go  wheels
//
// A Tree says what there is. What its slots hold at the moment is package state, who may move an actuator is package claim, and
// package treefile reads a tree from JSON. Units are SI, angles counter-clockwise about their axis (GOSTAI-FRAME-05).
//
// This package imports nothing but the standard library and reads no clock.
package robot
