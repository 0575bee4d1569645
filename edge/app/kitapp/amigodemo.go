package kitapp

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"kennel/edge/body/amigobot/session"
	"kennel/edge/body/amigobot/sip"
	"kennel/infra/cli"
)

func amigoDemoCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Drive an AmigoBot with the keyboard and watch its sensors",
		Long: `Drive an AmigoBot with the keyboard and watch its sensors. The motors are switched on at the start.

  t  teleop: up and down change the speed, left and right turn a little, space stops. The robot slows down before obstacles.
  w  wander: the robot drives about and turns away from obstacles
  s  sonar ranges            p  position relative to the start      b  stalled wheels and bumpers
  i  digital and analog I/O  l, c, g  laser, camera and gripper, which an AmigoBot does not have

Esc stops the robot and ends the session. After a connection loss the motors stay off until you press t or w.`,
		Example: `  robotkit amigo demo -port tcp:localhost:8101
  robotkit amigo demo -port serial:/dev/ttyUSB0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			restore, err := cbreak(cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer restore()
			keys := keysOf(cmd.InOrStdin())
			return withClient(cmd, address, func(c *client) error {
				defer c.say("")
				d := &demo{client: c}
				if err := d.start(teleop); err != nil {
					return err
				}
				for cmd.Context().Err() == nil {
					select {
					case k, ok := <-keys:
						if !ok || k == escape {
							return nil
						}
						d.press(k)
					default:
					}
					if err := c.run(); err != nil {
						if cmd.Context().Err() != nil {
							return nil
						}
						return err
					}
					if err := d.step(); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	controlFlag(cmd, &address)
	return cmd
}

// cbreak makes a terminal give single keys without showing them; restore undoes it. Other input stays as it is.
func cbreak(in io.Reader) (restore func(), err error) {
	f, ok := in.(*os.File)
	if !ok {
		return func() {}, nil
	}
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil { // not a terminal
		return func() {}, nil
	}
	t := *was
	t.Lflag &^= unix.ICANON | unix.ECHO
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &t); err != nil {
		return nil, fmt.Errorf("set up the terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }, nil // the terminal is gone
}

// key is a key of the terminal: its character, or one of these.
type key rune

const (
	escape key = 0x1b
	up     key = -1 - iota
	down
	right
	left
)

// keysOf returns the keys that are typed into in; the channel is closed at its end. The reading goroutine ends with the input or with the
// process.
func keysOf(in io.Reader) <-chan key {
	keys := make(chan key)
	go func() {
		defer close(keys)
		buf := make([]byte, 64)
		for {
			n, err := in.Read(buf)
			for _, k := range parseKeys(string(buf[:n])) {
				keys <- k
			}
			if err != nil {
				return
			}
		}
	}()
	return keys
}

// parseKeys returns the keys in what a terminal sent at once. An arrow is Esc, [ or O, and a letter; Esc before anything else is the key.
func parseKeys(text string) []key {
	var out []key
	for i := 0; i < len(text); i++ {
		if rest := text[i:]; len(rest) >= 3 && rest[0] == byte(escape) && (rest[1] == '[' || rest[1] == 'O') && rest[2] >= 'A' && rest[2] <= 'D' {
			out = append(out, [...]key{up, down, right, left}[rest[2]-'A'])
			i += 2
			continue
		}
		out = append(out, key(text[i]))
	}
	return out
}

// The modes, by their keys (AMIGO-DEMO-02).
const (
	teleop    = 't'
	wandering = 'w'
)

var modes = map[key]string{
	't': "teleop", 'w': "wander", 's': "sonar", 'p': "position", 'b': "bumps", 'i': "io", 'l': "laser", 'c': "camera", 'g': "gripper",
}

// Numbers of the demo.
const (
	speedStep = 0.05 // m/s (part of AMIGO-DEMO-04)
	turnStep  = 5    // deg (part of AMIGO-DEMO-04)

	guardFar, guardNear = 0.6, 0.2 // m: the guard slows down from the first and stops at the second (AMIGO-OPEN-12)

	wanderSpeed = 0.2         // m/s (AMIGO-OPEN-11)
	wanderNear  = 0.4         // m (AMIGO-OPEN-11)
	wanderTurn  = math.Pi / 4 // rad/s (own default)
	backSpeed   = 0.1         // m/s (own default)
	backTime    = time.Second // (own default)

	fresh     = time.Second            // age of a range that still counts; a ring of sonars takes 0.4 s
	showEvery = 250 * time.Millisecond // (own default)
)

// demo is the console of section 21 of the rows.
type demo struct {
	*client
	mode  key
	shown time.Duration

	speed float64 // teleop: wanted, m/s
	told  float64 // teleop: last sent, m/s
	at    time.Duration
	hold  bool // teleop: stopped until a key drives again

	turn float64       // wander: rad/s while it turns away
	back time.Duration // wander: end of backing off
}

// start enters a mode, with the motors on if it is one that drives.
func (d *demo) start(mode key) error {
	switch d.mode {
	case teleop, wandering:
		d.Stop()
	case 'i':
		d.send(sip.Int(sip.IORequest, 0))
	}
	d.mode, d.turn, d.back = mode, 0, 0
	d.stay()
	d.shown = d.now - showEvery
	switch mode {
	case teleop, wandering:
		if !d.State().Motors {
			return d.Enable(true)
		}
	case 'i':
		d.send(sip.Int(sip.IORequest, 2))
	}
	return nil
}

// stay makes teleop wait for a key before it drives again.
func (d *demo) stay() { d.speed, d.told, d.hold = 0, 0, true }

// send sends a command if the session is ready; the console shows when it is not.
func (d *demo) send(c sip.Command) {
	if err := d.Command(c); err != nil && !errors.Is(err, session.ErrNotReady) {
		d.say("%s", err)
	}
}

// press handles a key.
func (d *demo) press(k key) {
	if modes[k] != "" {
		if err := d.start(k); err != nil {
			d.say("%s", err)
		}
		return
	}
	if k == ' ' {
		d.mode = teleop
		d.Stop()
		d.stay()
		return
	}
	if d.mode != teleop {
		return
	}
	limit := 0.3 // the default of TransVelMax
	if st := d.State(); st.ConfigAt > 0 {
		limit = float64(st.Config.TransVelMax) * sip.RangeUnit
	}
	switch k {
	case up:
		d.speed, d.hold = min(d.speed+speedStep, limit), false
	case down:
		d.speed, d.hold = max(d.speed-speedStep, -limit), false
	case left:
		d.send(sip.Int(sip.DCHead, turnStep))
		d.hold = false
	case right:
		d.send(sip.Int(sip.DCHead, -turnStep))
		d.hold = false
	}
}

// step drives the robot in the modes that drive, and shows the mode's values now and then.
func (d *demo) step() error {
	st := d.State()
	switch d.mode {
	case teleop:
		if st.Phase != session.Ready {
			d.stay()
		}
		v := guard(d.speed, nearest(st, d.now))
		if !d.hold && (v != d.told || d.now-d.at >= session.Idle) {
			d.told, d.at = v, d.now
			d.send(sip.Int(sip.Vel, int(math.Round(v/sip.RangeUnit))))
		}
	case wandering:
		d.Velocity(d.wander(st))
	}
	if d.now-d.shown < showEvery {
		return nil
	}
	d.shown = d.now
	return d.show(st)
}

// front are the sonars that look forward (AMIGO-SON-01).
var front = [...]int{1, 2, 3, 4}

// nearest returns the nearest range of the front sonars in m; 0 if one of them has none that is fresh.
func nearest(st *session.State, now time.Duration) float64 {
	near := math.Inf(1)
	for _, i := range front {
		r := st.Ranges[i]
		if r.At == 0 || now-r.At > fresh {
			return 0
		}
		near = min(near, r.Metres)
	}
	return near
}

// guard returns a speed that is safe this far from an obstacle in front (AMIGO-DEMO-05, AMIGO-OPEN-12).
func guard(speed, near float64) float64 {
	if speed <= 0 {
		return speed
	}
	return speed * max(0, min((near-guardNear)/(guardFar-guardNear), 1))
}

// wander returns the velocities of a robot that avoids obstacles: it backs off from a stall, turns away from near obstacles until the way
// is free, and else drives ahead (AMIGO-OPEN-11).
func (d *demo) wander(st *session.State) (v, w float64) {
	near := nearest(st, d.now)
	switch {
	case st.StallLeft || st.StallRight:
		d.back = d.now + backTime
	case near >= wanderNear:
		d.turn = 0
	case d.turn == 0:
		d.turn = wanderTurn
		if min(st.Ranges[1].Metres, st.Ranges[2].Metres) < min(st.Ranges[3].Metres, st.Ranges[4].Metres) {
			d.turn = -wanderTurn
		}
	}
	switch {
	case d.now < d.back:
		return -backSpeed, 0
	case near == 0:
		return 0, 0
	case d.turn != 0:
		return 0, d.turn
	}
	return guard(wanderSpeed, near), 0
}

// demoLine is the state that the demo shows.
type demoLine struct {
	Mode    string    `json:"mode"`
	Phase   string    `json:"phase"` // of the session
	X       float64   `json:"x_m"`
	Y       float64   `json:"y_m"`
	Heading float64   `json:"heading_rad"`
	Speed   float64   `json:"speed_mps"` // measured
	Wanted  float64   `json:"wanted_mps"`
	Motors  bool      `json:"motors"`
	Battery float64   `json:"battery_v"`
	Stall   [2]bool   `json:"stall"` // left, right
	Bumpers uint16    `json:"bumpers"`
	Ranges  []float64 `json:"ranges_m"` // 0: none yet
	In      uint8     `json:"digital_in"`
	Out     uint8     `json:"digital_out"`
	Analog  []float64 `json:"analog_v"`
}

func (d *demo) show(st *session.State) error {
	l := demoLine{
		Mode: modes[d.mode], Phase: st.Phase.String(), X: st.X, Y: st.Y, Heading: st.Heading, Speed: (st.Left + st.Right) / 2, Wanted: d.speed,
		Motors: st.Motors, Battery: st.Battery, Stall: [2]bool{st.StallLeft, st.StallRight}, Bumpers: st.Bumpers, In: st.Digin, Out: st.Digout,
		Analog: []float64{},
	}
	for _, r := range st.Ranges {
		l.Ranges = append(l.Ranges, r.Metres)
	}
	for _, v := range st.IO.Analog {
		l.Analog = append(l.Analog, float64(v)*sip.AnalogUnit)
	}
	if cli.JSON(d.cmd) {
		return cli.PrintLine(d.cmd, l, nil)
	}
	text := l.text(d.mode)
	switch {
	case st.Phase != session.Ready:
		text = "the session is " + l.Phase
	case !st.Motors && (d.mode == teleop || d.mode == wandering):
		text = "the motors are off; " + string(rune(d.mode)) + " switches them on"
	}
	_, err := fmt.Fprintf(d.cmd.OutOrStdout(), "\r\x1b[K%s: %s", l.Mode, text)
	return err
}

// text is the line of a mode (AMIGO-DEMO-07).
func (l demoLine) text(mode key) string {
	switch mode {
	case 's':
		return fmt.Sprintf("%.2f m", l.Ranges)
	case 'p':
		return fmt.Sprintf("x %.3f m, y %.3f m, heading %.1f°", l.X, l.Y, l.Heading*180/math.Pi)
	case 'b':
		return fmt.Sprintf("left wheel stalled: %t, right: %t, bumpers %04x", l.Stall[0], l.Stall[1], l.Bumpers)
	case 'i':
		return fmt.Sprintf("in %06b, out %06b, analog %s V", l.In, l.Out, strings.Trim(fmt.Sprintf("%.2f", l.Analog), "[]"))
	case 'l', 'c', 'g':
		return "not fitted"
	}
	return fmt.Sprintf("speed %.2f m/s (wanted %.2f), heading %.1f°, battery %.1f V", l.Speed, l.Wanted, l.Heading*180/math.Pi, l.Battery)
}
