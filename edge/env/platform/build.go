package platform

import (
	"fmt"
	"os"
	"strings"

	"kennel/edge/env"
)

// Build is the class of a robot: the two classes use different endpoints and never mix (VEC-CLD-06, VEC-SEC-10).
type Build string

// The classes. The zero value of a configuration means production.
const (
	Production  Build = "production"
	Development Build = "development"
)

// RobotBuild returns the class of the robot: development if the boot loader says so (VEC-BOOT-08), or the release ends in d or ud
// (VEC-OTA-09). The public "dev" update channel makes no development robot.
func RobotBuild(root *os.Root, hw env.Hardware) (Build, error) {
	p, err := hw.Boot(root)
	if err != nil {
		return "", fmt.Errorf("build class: %w", err)
	}
	if p.Dev {
		return Development, nil
	}
	switch v := OSVersion(root); strings.TrimLeft(v, "0123456789.") {
	case "d", "ud":
		return Development, nil
	}
	return Production, nil
}
