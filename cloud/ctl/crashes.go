package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/telemetry/crash"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) crashes() *cobra.Command {
	return group(&cobra.Command{Use: "crashes", Short: "Crashes of robots' programs",
		Long: "Crashes with the same cause are one group. Symbol files give functions and lines to the addresses in minidumps.",
		Example: "  kennelctl crashes list -state open\n  kennelctl crashes show 6d59fcd7-0b97-4572-9d24-27ee3045a43f\n" +
			"  kennelctl crashes resolve 6d59fcd7-0b97-4572-9d24-27ee3045a43f -fixed-in 2.0.1.6076"},
		a.crashesList(), a.crashesReports(), a.crashesShow(), a.crashesGet(), a.crashesResolve(), a.crashesReopen(),
		group(&cobra.Command{Use: "symbols", Short: "Symbol files, which put names to addresses",
			Example: "  kennelctl crashes symbols list\n  kennelctl crashes symbols upload vic-engine.sym"}, a.symbolsList(), a.symbolsUpload(), a.symbolsRemove()))
}

func (a *app) crashesList() *cobra.Command {
	var state, program, version, after string
	var limit int64
	cmd := shows(a, describe("list", "List groups of crashes, the latest seen first", "crashes list", "crashes list -state open -version 2.0.1.6076"),
		func(ctx context.Context, _ []string) (reply[[]client.Group], error) {
			return a.api.GetCrashGroups(ctx, client.GetCrashGroupsQuery{State: given(state), Program: given(program), Version: given(version), After: given(after), Limit: &limit})
		},
		rows("GROUP|STATE|CRASHES|ROBOTS|LAST SEEN|PROGRAM|SIGNATURE", func(g client.Group) cells {
			return cells{g.ID, g.State, g.Crashes, g.Robots, g.LastSeen, g.Program, g.Signature}
		}))
	f := cmd.Flags()
	f.StringVar(&state, "state", "", "only groups in `STATE`: open, resolved or regressed")
	f.StringVar(&program, "program", "", "only groups of `PROGRAM`")
	f.StringVar(&version, "version", "", "only groups that `VERSION` had")
	f.StringVar(&after, "after", "", "continue after the group with this `ID`")
	f.Int64Var(&limit, "limit", crash.DefaultLimit, "show at most `N` groups")
	_ = cmd.RegisterFlagCompletionFunc("state", func(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
		for _, s := range crash.States {
			out = append(out, string(s))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func (a *app) crashesReports() *cobra.Command {
	var thing, of, version, after string
	var limit int64
	cmd := shows(a, describe("reports", "List single crashes, the newest first", "crashes reports -thing vic:00e20100", "crashes reports -group 6d59fcd7-0b97-4572-9d24-27ee3045a43f -version 2.0.1.6076"),
		func(ctx context.Context, _ []string) (reply[[]client.Crash], error) {
			return a.api.GetCrashes(ctx, client.GetCrashesQuery{Thing: given(thing), Group: given(of), Version: given(version), After: given(after), Limit: &limit})
		},
		rows("CRASH|THING|CRASHED|PROGRAM|VERSION|REASON", func(c client.Crash) cells {
			return cells{c.ID, c.Thing, c.At, c.Program, cmp.Or(c.Version, "–"), c.Reason}
		}))
	f := cmd.Flags()
	f.StringVar(&thing, "thing", "", "only crashes of the robot `THING`")
	f.StringVar(&of, "group", "", "only crashes of `GROUP`")
	f.StringVar(&version, "version", "", "only crashes of `VERSION`")
	f.StringVar(&after, "after", "", "continue after the crash with this `ID`")
	f.Int64Var(&limit, "limit", crash.DefaultLimit, "show at most `N` crashes")
	_ = cmd.RegisterFlagCompletionFunc("thing", a.completeThing)
	return cmd
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
	return shows(a, &cobra.Command{Use: "show ID", Short: "Show a crash with its stack", Long: "ID is a crash, or a group, of which the latest crash is shown.",
		Example: "  kennelctl crashes show 6d59fcd7-0b97-4572-9d24-27ee3045a43f"},
		func(ctx context.Context, args []string) (reply[client.Crash], error) { return a.crash(ctx, args[0]) },
		func(t *cli.Table, c client.Crash) {
			pairs(t, "crash", c.ID, "group", c.Group, "thing", c.Thing, "program", c.Program, "version", cmp.Or(c.Version, "not known"), "crashed", c.At, "reason", c.Reason, "expires", c.Expires)
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
	var to string
	var tail bool
	cmd := a.runs(&cobra.Command{Use: "get ID", Short: "Download the dump of a crash, or its log", Long: "ID is a crash, or a group for its latest one. An existing file is not overwritten; -to - writes to standard output.",
		Example: "  kennelctl crashes get 6d59fcd7-0b97-4572-9d24-27ee3045a43f -to engine.dmp\n  kennelctl crashes get 6d59fcd7-0b97-4572-9d24-27ee3045a43f -log"},
		func(cmd *cobra.Command, args []string) error {
			found, err := a.crash(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			kind, end := "dump", ".dmp"
			if tail {
				kind, end = "log", ".log"
			}
			c, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			resp, err := c.send(cmd.Context(), http.MethodGet, "/v1/crashes/"+url.PathEscape(found.Value.ID)+"/"+kind, nil, nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if to == "-" {
				_, err := io.Copy(cmd.OutOrStdout(), resp.Body)
				return err
			}
			name := cmp.Or(to, found.Value.ID+end)
			n, err := saveNew(name, resp.Body, resp.ContentLength)
			if err != nil {
				return err
			}
			return cli.Print(cmd, struct {
				File  string `json:"file"`
				Bytes int64  `json:"bytes"`
			}{name, n}, func(t *cli.Table) { t.Text(fmt.Sprintf("%s: %d bytes", name, n)) })
		})
	cmd.Flags().StringVar(&to, "to", "", "write to `FILE` instead of one called after the crash's id")
	cmd.Flags().BoolVar(&tail, "log", false, "the log that came with the crash")
	_ = cmd.MarkFlagFilename("to")
	return cmd
}

func groupTable(t *cli.Table, g client.Group) {
	pairs(t, "group", g.ID, "state", g.State, "fixed in", cmp.Or(g.FixedIn, "–"), "note", cmp.Or(g.Note, "–"), "program", g.Program, "signature", g.Signature, "crashes", g.Crashes, "robots", g.Robots,
		"versions", strings.Join(g.Versions, ", "), "first seen", g.FirstSeen, "last seen", g.LastSeen)
}

// crashesState makes a command that changes the state of a group.
func (a *app) crashesState(cmd *cobra.Command, state crash.State) (*cobra.Command, *client.CrashChange) {
	var note string
	c := &client.CrashChange{State: string(state)}
	cmd = shows(a, cmd, func(ctx context.Context, args []string) (reply[client.Group], error) {
		c.Note = given(note)
		return a.api.PatchCrashGroupsGroup(ctx, args[0], *c)
	}, groupTable)
	cmd.Flags().StringVar(&note, "note", "", "`TEXT` for people")
	return cmd, c
}

func (a *app) crashesResolve() *cobra.Command {
	cmd, c := a.crashesState(&cobra.Command{Use: "resolve GROUP", Short: "Mark a group of crashes as resolved",
		Long:    "A crash of a later version than had crashed, or of -fixed-in and what follows it, makes the group regressed.",
		Example: "  kennelctl crashes resolve 6d59fcd7-0b97-4572-9d24-27ee3045a43f -fixed-in 2.0.1.6076 -note 'checks for nil'"}, crash.Resolved)
	cmd.Flags().StringVar(&c.FixedIn, "fixed-in", "", "the `VERSION` that has the fix")
	return cmd
}

func (a *app) crashesReopen() *cobra.Command {
	cmd, _ := a.crashesState(describe("reopen GROUP", "Mark a group of crashes as open", "crashes reopen 6d59fcd7-0b97-4572-9d24-27ee3045a43f"), crash.Open)
	return cmd
}

func (a *app) symbolsList() *cobra.Command {
	return shows(a, describe("list", "List symbol files", "crashes symbols list"),
		func(ctx context.Context, _ []string) (reply[[]client.Symbols], error) {
			return a.api.GetCrashSymbols(ctx)
		},
		rows("DEBUG ID|MODULE|CPU|FUNCTIONS|BYTES|UPLOADED|BY", func(s client.Symbols) cells {
			return cells{s.DebugID, s.Module, s.Cpu, s.Functions, s.Size, s.Uploaded, s.By}
		}))
}

func (a *app) symbolsRemove() *cobra.Command {
	return shows(a, describe("remove DEBUG-ID", "Delete a symbol file; names that it gave stay", "crashes symbols remove 3983974E3E1BE0D45C55B2B5C59FD7DF0"),
		func(ctx context.Context, args []string) (reply[client.None], error) {
			return a.api.DeleteCrashSymbolsDebug(ctx, args[0])
		},
		func(t *cli.Table, _ client.None) { t.Text("deleted") })
}

func (a *app) symbolsUpload() *cobra.Command {
	return a.runs(&cobra.Command{Use: "upload FILE...", Short: "Upload symbol files, as Breakpad's dump_syms writes them",
		Long:    "A file replaces the one with its debug id. Stored crashes are looked at again within a minute.",
		Example: "  kennelctl crashes symbols upload vic-engine.sym libc.so.6.sym"},
		func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context())
			if err == nil {
				c, err = newConn(c.s, storeTime)
			}
			if err != nil {
				return err
			}
			var all []client.Symbols
			for _, name := range args {
				s, err := sendSymbols(cmd.Context(), c, name)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				all = append(all, s)
			}
			return cli.Print(cmd, all, func(t *cli.Table) {
				rows("DEBUG ID|MODULE|FUNCTIONS", func(s client.Symbols) cells { return cells{s.DebugID, s.Module, s.Functions} })(t, all)
			})
		})
}

// sendSymbols uploads one file.
func sendSymbols(ctx context.Context, c *conn, name string) (s client.Symbols, err error) {
	f, err := os.Open(name)
	if err != nil {
		return s, errs.New(errs.Invalid, "%w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	resp, err := c.send(ctx, http.MethodPost, "/v1/crash-symbols", &uploading{Reader: f, size: info.Size(), name: filepath.Base(name), out: io.Discard},
		http.Header{"Accept": {"application/json"}, "Content-Type": {"text/plain"}})
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&s)
}
