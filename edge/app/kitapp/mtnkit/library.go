package mtnkit

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// owned is one motion of the library as library prints it.
type owned struct {
	Motion string           `json:"motion"`
	MS     map[string]int64 `json:"ms"` // by model
}

func libraryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "library [MODEL MOTION OUT.mtn]",
		Short: "List the motions that come with Kennel, or write one",
		Long:  `List the motions that come with Kennel, which every model has, with their durations in ms; or write one of them as a model does it.`,
		Example: `  robotkit mtn library
  robotkit mtn library ers-7 give_paw paw.mtn`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 3 {
				return cli.Usage("%s: want none, or MODEL, MOTION and OUT.mtn", cli.Count(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return list(cmd)
			}
			m, err := modelNamed("model", args[0])
			if err != nil {
				return cli.Usage("MODEL %.40q: want one of %s", args[0], modelWords())
			}
			f, err := motions.Load(m, args[1])
			if errors.Is(err, motions.ErrUnknown) {
				return errs.New(errs.NotFound, "%w", err)
			} else if err != nil {
				return err
			}
			return save(cmd, f, args[2], nil)
		},
	}
}

// list prints the library.
func list(cmd *cobra.Command) error {
	all := []owned{}
	for _, name := range motions.Library() {
		o := owned{name, map[string]int64{}}
		for _, m := range aibo.Models {
			f, err := motions.Load(m, name)
			if err != nil {
				return err
			}
			o.MS[m.String()] = f.Duration().Milliseconds()
		}
		all = append(all, o)
	}
	return cli.Print(cmd, all, func(t *cli.Table) {
		header := []any{"MOTION"}
		for _, m := range aibo.Models {
			header = append(header, strings.ToUpper(m.String()))
		}
		t.Row(header...)
		for _, o := range all {
			row := []any{o.Motion}
			for _, m := range aibo.Models {
				row = append(row, o.MS[m.String()])
			}
			t.Row(row...)
		}
	})
}
