package ctl

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/telemetry/crash"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) crashes() *cobra.Command {
	return group(&cobra.Command{Use: "crashes", Short: "Show and manage crashes of robots' programs",
		Long: "Crashes with the same cause form a group. Symbol files translate the addresses in minidumps to functions and lines.",
		Example: "  kennelctl crashes list -state open\n  kennelctl crashes show 6d59fcd7-0b97-4572-9d24-27ee3045a43f\n" +
			"  kennelctl crashes resolve 6d59fcd7-0b97-4572-9d24-27ee3045a43f -fixed-in 2.0.1.6076"},
		a.crashesShow(), a.crashesGet(),
		group(&cobra.Command{Use: "symbols", Short: "Manage debug symbols",
			Example: "  kennelctl crashes symbols list\n  kennelctl crashes symbols upload vic-engine.sym"}, a.symbolsUpload()))
}

// crash returns one crash; of a group the latest.
func (a *app) crash(ctx context.Context, id string) (reply[client.Crash], error) {
	r, err := a.api.GetCrashesCrash(ctx, id)
	if errs.CodeOf(err) != crash.CodeUnknown {
		return r, err
	}
	one := int64(1)
	list, listErr := a.api.GetCrashes(ctx, client.GetCrashesQuery{Group: &id, Limit: &one})
	if listErr != nil || len(list.Value) == 0 {
		return r, err
	}
	return a.api.GetCrashesCrash(ctx, list.Value[0].ID)
}

func (a *app) crashesShow() *cobra.Command {
	return shows(a, &cobra.Command{Use: "show ID", Short: "Show a crash with its stack", Long: "ID is a crash, or a group (shows its latest crash).",
		Example: "  kennelctl crashes show 6d59fcd7-0b97-4572-9d24-27ee3045a43f"},
		func(ctx context.Context, args []string) (reply[client.Crash], error) { return a.crash(ctx, args[0]) },
		func(t *cli.Table, c client.Crash) {
			pairs(t, "crash", c.ID, "group", c.Group, "thing", c.Thing, "program", c.Program, "version", cmp.Or(c.Version, "unknown"), "crashed", c.At, "reason", c.Reason, "expires", c.Expires)
			if c.Problem != "" {
				pairs(t, "problem", c.Problem)
			}
			if c.Analysis == nil {
				return
			}
			for _, th := range c.Analysis.Threads[:min(len(c.Analysis.Threads), 1)] {
				t.Text("")
				for i, f := range th.Frames {
					at := cmp.Or(f.Function, strings.TrimPrefix(f.Module+"+"+f.Offset, "+"))
					if f.File != "" {
						at += fmt.Sprintf(" (%s:%d)", f.File, f.Line)
					}
					t.Text(fmt.Sprintf("%3d  %s [%s]", i, at, f.Trust))
				}
			}
		})
}

func (a *app) crashesGet() *cobra.Command {
	var to destination
	var tail bool
	cmd := a.runs(&cobra.Command{Use: "get ID", Short: "Download the dump of a crash, or its log", Long: "ID is a crash, or a group (downloads its latest crash). An existing file is not overwritten.",
		Example: "  kennelctl crashes get 6d59fcd7-0b97-4572-9d24-27ee3045a43f -to engine.dmp\n  kennelctl crashes get 6d59fcd7-0b97-4572-9d24-27ee3045a43f -log -to engine.log"},
		func(cmd *cobra.Command, args []string) error {
			if err := to.check(cmd); err != nil {
				return err
			}
			found, err := a.crash(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			kind, end := "dump", ".dmp"
			if tail {
				kind, end = "log", ".log"
			}
			_, err = a.download(cmd, "/v1/crashes/"+url.PathEscape(found.Value.ID)+"/"+kind, to.named(found.Value.ID+end))
			return err
		})
	to.flag(cmd)
	cmd.Flags().BoolVar(&tail, "log", false, "download the log that came with the crash")
	return cmd
}

func (a *app) symbolsUpload() *cobra.Command {
	return a.runs(&cobra.Command{Use: "upload FILE...", Short: "Upload symbol files made by Breakpad's dump_syms",
		Long:    "A file replaces the one with the same debug id. Stored crashes are analysed again within a minute.",
		Example: "  kennelctl crashes symbols upload vic-engine.sym libc.so.6.sym"},
		func(cmd *cobra.Command, args []string) error {
			var all []client.Symbols
			for _, name := range args {
				r, err := upload[client.Symbols](a, cmd, http.MethodPost, "/v1/crash-symbols", "text/plain", name)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				all = append(all, r.Value)
			}
			return cli.Print(cmd, all, func(t *cli.Table) {
				rows("DEBUG ID|MODULE|FUNCTIONS", func(s client.Symbols) cells { return cells{s.DebugID, s.Module, s.Functions} })(t, all)
			})
		})
}
