// Package mindapp is the program mindd: a robot's character, which plays animations, keeps the face on its display alive, and speaks (edge/mind). It uses no network; other
// programs of the robot reach it through a socket (edge/mind/mindlink).
//
// It is a process of its own, because agentd has little memory to spare and robotd no time: a mindd that dies costs a robot its face until it is started again,
// and what it moved stops when robotd notices.
package mindapp

import (
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/app/mindapp/notices"
	"kennel/edge/bodies"
	"kennel/edge/body/monoclock"
	"kennel/edge/consolefilter"
	"kennel/edge/crash"
	"kennel/edge/env/robotfs"
	"kennel/edge/mind"
	"kennel/edge/mind/mindlink"
	"kennel/edge/sound/voice"
	"kennel/infra/cli"
	"kennel/infra/cli/version"
	"kennel/infra/errs"
)

// Main runs mindd and returns its exit code.
func Main(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	return cli.Main(command(), args, getenv, stdout, stderr)
}

func command() *cobra.Command {
	var root, level, to, synth string
	cmd := &cobra.Command{
		Use:   mindlink.Program,
		Short: "Run a robot's character: animations, the face on its display, its voice",
		Long: `Run a robot's character. It plays animations on the body that robotd drives, with their sounds, and speaks; what the body does not have it leaves out. Other programs of
the robot connect to the socket ` + mindlink.SocketPath + ` below the root. SIGTERM and SIGINT end what plays, and the program with code 0.

Programs that listen hear the robot on every machine. -sound device plays on this one's sound card too, with pw-play or aplay, and -sound FILE.wav writes a file.`,
		Example: "  mindd -root /\n  mindd -root ./r1 -log-level debug\n  mindd -root ./r1 -sound device -voice espeak-ng",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if root, err = filepath.Abs(root); err != nil {
				return err
			}
			dir, err := os.OpenRoot(root)
			if err != nil {
				return errs.New(errs.Invalid, "-root: want the robot's folder: %w", err)
			}
			defer dir.Close() // nothing buffered
			if !cmd.Flags().Changed("root") {
				if err := robotfs.CheckDefault(dir); err != nil {
					return err
				}
			}
			log, _, err := consolefilter.Logger(dir, cmd.ErrOrStderr(), level)
			if err != nil {
				return cli.Usage("-log-level: %w", err)
			}
			c := crash.Begin(root, mindlink.Program, bodies.Hardware{}, cli.Getenv(cmd.Context()), log)
			defer c.End()
			log.InfoContext(cmd.Context(), "mindd running", "version", version.String(), "root", root)
			if synth != "" && !slices.Contains(voice.Programs, synth) {
				return cli.Usage("-voice %.40q: expected one of %s", synth, errs.List(voice.Programs))
			}
			sound, err := Sound(dir, log, to, synth)
			if err != nil {
				return err
			}
			shows := append(notices.Of(dir, cli.Getenv(cmd.Context())), notices.Boot(dir, log, monoclock.Now))
			return mind.Serve(cmd.Context(), log, dir, mind.Own{Seed: seed(dir), Motions: Motions, Notices: shows, Color: Color(dir, log), Sound: sound, Display: Display(dir, log)})
		},
	}
	cmd.Flags().StringVar(&root, "root", "/", "the robot's root folder `DIR`")
	cmd.Flags().StringVar(&to, "sound", "none", "`WHERE` the robot is heard on this machine: none, device or a file that ends with .wav")
	cmd.Flags().StringVar(&synth, "voice", "", "`SYNTHESISER` of its speech, espeak-ng or flite (default: flite for English, espeak-ng for the rest)")
	cmd.Flags().StringVar(&level, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	return cmd
}

// seed decides a robot's blinks and choices, by its folder's name, its boot and the time, so that robots that start together do not blink together.
func seed(root *os.Root) uint64 {
	h := fnv.New64a()
	boot, _ := robotfs.BootID(root) // without one the time decides
	fmt.Fprint(h, root.Name(), boot, time.Now().UnixNano())
	return h.Sum64()
}
