package ctl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/cloud/page"
	"kennel/infra/cli"
	"kennel/infra/thing"
	kennel "kennel/sdk/go"
	"kennel/sdk/recording"
)

// progressEvery is how often a person sees how far a recording is.
const progressEvery = time.Second

func (a *app) robotRecord() *cobra.Command {
	var (
		o   recording.Options
		to  string
		max time.Duration
	)
	cmd := a.runs(&cobra.Command{Use: "record ROBOT [NAME...]", Short: "Record a robot's values, events, orders and pictures as an MCAP file",
		Long: "Record what a robot measures, what happens to it, the orders of all programs, and with -pictures what its camera sees, until interrupted or for -for.\n" +
			"Foxglove and Rerun open the file; robotkit replay runs its orders again.\n\n" +
			"ROBOT is the robot's file, as kennelctl my programs add makes it, or one of your own robots: then a program is added for the recording and removed at\n" +
			"its end. The robot must be in reach: it is asked itself, not the cloud. NAME is a part or a slot (kennelctl robot tree lists them); without one all are\n" +
			"recorded, each value when it changes, at most -rate times a second. A recording that is cut off can be read up to its last 2 seconds.",
		Example: "  kennelctl robot record robot.json -o run.mcap\n  kennelctl robot record vic:00e20100 -pictures 5 -for 1m -o run.mcap\n" +
			"  kennelctl robot record robot.json headPitch robot.body.laser -rate 50 -o head.mcap"},
		func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Rate <= 0 || o.Rate > 50:
				return cli.Usage("-rate %v: want above 0, at most 50 values of a slot a second", o.Rate)
			case o.Pictures < 0 || o.Pictures > 15:
				return cli.Usage("-pictures %v: want 0 (none) to 15 a second", o.Pictures)
			case max < 0:
				return cli.Usage("-for %v: want a time such as 1m", max)
			case to == "":
				return cli.Usage("missing -o FILE, such as run.mcap")
			}
			o.Names = args[1:]
			ctx := cmd.Context()
			place, back, err := a.robotPlace(ctx, args[0], o.Pictures > 0)
			if err != nil {
				return err
			}
			defer back()
			robot, err := kennel.ConnectTo(ctx, place)
			if err != nil {
				return recording.Kind(err)
			}
			defer robot.Close()
			f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return cli.Usage("%s already exists: give another name with -o", to)
			} else if err != nil {
				return err
			}
			if onTerminal(cmd.ErrOrStderr()) {
				var said time.Time
				o.Tell = func(c recording.Counts) {
					if time.Since(said) >= progressEvery {
						said = time.Now()
						fmt.Fprintf(cmd.ErrOrStderr(), "\r%s", counted(c))
					}
				}
				defer fmt.Fprintln(cmd.ErrOrStderr())
			}
			limited := ctx
			if max > 0 {
				var cancel context.CancelFunc
				limited, cancel = context.WithTimeout(ctx, max)
				defer cancel()
			}
			c, err := recording.Record(limited, robot, f, o)
			if err = errors.Join(recording.Kind(err), f.Close()); c.Bytes == 0 {
				return errors.Join(err, os.Remove(to))
			}
			return errors.Join(err, cli.Print(cmd, struct {
				File string `json:"file"`
				recording.Counts
			}{to, c}, func(t *cli.Table) { t.Text(to + ": " + counted(c)) }))
		})
	cmd.ValidArgsFunction = nil
	cmd.Flags().Float64Var(&o.Rate, "rate", 10, "record at most `N` values of a slot a second")
	cmd.Flags().Float64Var(&o.Pictures, "pictures", 0, "record `N` pictures a second, at most 15; the robot's file needs the right camera")
	cmd.Flags().DurationVar(&max, "for", 0, "stop after this time")
	cli.AddOutputFile(cmd, &to, "write to a new")
	return cmd
}

func counted(c recording.Counts) string {
	text := fmt.Sprintf("%.0f s, %s, %s, %s, %s, %s", c.Seconds, cli.Count(int64(c.Values), "value"), cli.Count(int64(c.Events), "event"), cli.Count(int64(c.Orders), "order"),
		cli.Count(int64(c.Pictures), "picture"), page.Bytes(c.Bytes))
	if c.Missed > 0 {
		text += fmt.Sprintf(", %d missed", c.Missed)
	}
	return text
}

// robotPlace returns where a robot is: of its file, or, for a robot of the caller's own, of a program that is added, and removed by back.
func (a *app) robotPlace(ctx context.Context, name string, camera bool) (p kennel.Place, back func(), err error) {
	id, ierr := thing.Parse(name)
	if _, err := os.Stat(name); err == nil || ierr != nil {
		p, err = kennel.File(name)
		return p, func() {}, recording.Kind(err)
	}
	rights := []string{"look"}
	if camera {
		rights = append(rights, "camera")
	}
	program := "recording " + rand.Text()[:6]
	file, err := a.api.PostMyRobotsThingPrograms(ctx, string(id), client.NewProgram{Name: program, Rights: rights, Days: 1})
	if err != nil {
		return p, nil, err
	}
	f := file.Value
	return kennel.Place{Thing: f.Thing, Address: f.Address, Name: f.Name, Certificate: f.Certificate, Token: f.Token}, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		all, err := a.api.GetMyRobotsThingPrograms(ctx, string(id))
		for _, x := range all.Value {
			if err == nil && x.ClientName == program {
				_, _ = a.api.DeleteMyRobotsThingProgramsProgram(ctx, string(id), x.ID) // its token is good for a day at most
			}
		}
	}, nil
}
