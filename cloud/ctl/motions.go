package ctl

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/motion"
	"kennel/infra/api/commandwire"
	"kennel/infra/backoff"
	"kennel/infra/cli"
	"kennel/infra/errs"

	"kennel/cloud/openapi/client"
)

// judgedEvery is how often the cloud is asked for a robot's verdict.
const judgedEvery = 500 * time.Millisecond

// motions has the commands that are not declared (cloud/fleet/motion/motionapi): those that read or write files, or wait.
func (a *app) motions() *cobra.Command {
	return group(describe("motions", "List, play and upload the motions of robots with joints", "motions list aibo:00e20100", "motions play aibo:00e20100 sit", "motions upload aibo:00e20100 nod_twice nod.mtn"),
		a.motionsPlay(), a.motionsUpload(), a.motionsDownload())
}

func motionPath(thing, name string) string {
	return "/v1/things/" + url.PathEscape(thing) + "/motions/" + url.PathEscape(name)
}

func (a *app) motionsPlay() *cobra.Command {
	cmd := describe("play THING NAME", "Make a robot play a motion, or another of its animations, and wait for the end", "motions play aibo:00e20100 sit", "motions play vic:00e20100 anim_mood_happy_01")
	cmd.Args = cobra.ExactArgs(2)
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		r, err := a.api.PostThingsThingPlay(cmd.Context(), args[0], client.PlayWish{Name: args[1]})
		if err == nil {
			r, err = a.settled(cmd.Context(), args[0], r, commandwire.MaxPlay, func(string) { say(cmd, "waiting for %s", args[0]) })
		}
		return show(cmd, r, err, showCommand)
	})
}

func (a *app) motionsUpload() *cobra.Command {
	wait := true
	cmd := describe("upload THING NAME FILE", "Upload a motion for a robot, and say what the robot found in it", "motions upload aibo:00e20100 nod_twice nod.mtn")
	cmd.Long = "FILE is a motion file of the robot's model (.mtn for an AIBO) or a text form of one (robotkit mtn dump). The robot checks it. A motion that it\ncannot do, or that would make it fall, is refused with the reasons, and the command fails."
	cmd.Args = cobra.ExactArgs(3)
	cmd = a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		r, err := upload[client.Entry](a, cmd, http.MethodPut, motionPath(args[0], args[1]), "application/octet-stream", args[2])
		for asked := 0; err == nil && wait && motion.State(r.Value.State) == motion.Waiting; asked++ {
			if asked == 0 {
				say(cmd, "waiting for %s to check it", args[0])
			}
			if err = backoff.Sleep(cmd.Context(), judgedEvery); err == nil {
				r, err = a.api.GetThingsThingMotionsName(cmd.Context(), args[0], args[1])
			}
		}
		if err := show(cmd, r, err, showMotion); err != nil || motion.State(r.Value.State) != motion.Refused {
			return err
		}
		return errs.Coded(errs.Conflict, "refused", "the robot refused %s: %s", args[1], r.Value.Why)
	})
	cmd.Flags().BoolVar(&wait, "wait", wait, "wait until the robot has checked it")
	return cmd
}

func showMotion(t *cli.Table, m client.Entry) {
	pairs(t, "motion", m.Name, "state", string(m.State), "duration", (time.Duration(m.SpanMS) * time.Millisecond).String())
	for _, f := range m.Findings {
		line := f.Severity + ": " + f.What
		if f.Offset >= 0 {
			line = fmt.Sprintf("%s: offset %#x: %s", f.Severity, f.Offset, f.What)
		}
		if f.Expected != "" {
			line += ": expected " + f.Expected + ", found " + f.Found
		}
		t.Text(line)
	}
}

func (a *app) motionsDownload() *cobra.Command {
	var to destination
	cmd := describe("download THING NAME", "Download an uploaded motion, as a motion file of the robot's model", "motions download aibo:00e20100 nod_twice -to nod.mtn")
	cmd.Args = cobra.ExactArgs(2)
	cmd = a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		if err := to.check(cmd); err != nil {
			return err
		}
		_, err := a.download(cmd, motionPath(args[0], args[1])+"/file", to.named(args[1]+".mtn"))
		return err
	})
	to.flag(cmd)
	return cmd
}
