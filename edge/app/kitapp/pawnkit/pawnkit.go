// Package pawnkit has the commands of robotkit for scripts in the language Pawn, outside of a robot.
package pawnkit

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kennel/edge/pawn/amx"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// Pawn returns the command for scripts.
func Pawn() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pawn", Short: "Compile, run and list Pawn scripts, the language of Pleo",
		Example: "  robotkit pawn build dance.p -o dance.amx\n  robotkit pawn run dance.amx\n  robotkit pawn list dance.amx",
	}
	cmd.AddCommand(buildCommand(), runCommand(), listCommand())
	return cmd
}

// maxFile is how much of a file is read.
const maxFile = 16 << 20

// open reads a compiled script.
func open(name string) (*amx.Program, error) {
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "%w", err)
	}
	if err == nil && info.Size() > maxFile {
		return nil, cli.Usage("%s has %d bytes: want at most %d", name, info.Size(), maxFile)
	}
	var file []byte
	if err == nil {
		file, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	p, err := amx.Read(file)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%s: %w", name, err)
	}
	return p, nil
}
