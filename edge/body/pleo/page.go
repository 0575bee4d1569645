package pleo

import (
	"embed"
	"io/fs"
)

//go:embed page
var pageFiles embed.FS

// page returns Pleo's part of the robot's own page: its posture, places to touch, drives and feelings.
func page() fs.FS {
	part, err := fs.Sub(pageFiles, "page")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return part
}
