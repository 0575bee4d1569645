package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"kennel/edge/agent/robotfs"
)

// Build is the class of a robot: the two classes use different endpoints and never mix (VEC-CLD-06, VEC-SEC-10).
type Build string

// The classes. The zero value of a configuration means production.
const (
	Production  Build = "production"
	Development Build = "development"
)

// CommandLineFile is the kernel's command line: development robots have the word anki.dev on it.
const CommandLineFile = "proc/cmdline"

// RobotBuild returns the class of the robot: development if the kernel's command line says anki.dev, or the release ends in d or ud
// (VEC-OTA-09). The public "dev" update channel makes no development robot.
func RobotBuild(root *os.Root) (Build, error) {
	b, err := robotfs.ReadFile(root, CommandLineFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("build class: %w", err)
	}
	if slices.ContainsFunc(strings.Fields(string(b)), func(w string) bool { return w == "anki.dev" || w == "anki.dev=1" }) {
		return Development, nil
	}
	switch v := OSVersion(root); strings.TrimLeft(v, "0123456789.") {
	case "d", "ud":
		return Development, nil
	}
	return Production, nil
}
