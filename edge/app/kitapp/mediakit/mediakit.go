// Package mediakit gathers the commands of robotkit for what a robot hears, says and shows.
package mediakit

import (
	"github.com/spf13/cobra"

	"kennel/edge/app/kitapp/animkit"
	"kennel/edge/app/kitapp/cubekit"
	"kennel/edge/app/kitapp/mickit"
	"kennel/edge/app/kitapp/moodkit"
	"kennel/edge/app/kitapp/soundkit"
)

// Commands returns the commands, each for the root.
func Commands() []*cobra.Command {
	return []*cobra.Command{mickit.Mic(), mickit.Wake(), soundkit.Sound(), soundkit.Say(), animkit.Anim(), animkit.Face(), cubekit.Cube(), moodkit.Mood()}
}
