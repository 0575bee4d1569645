package vectordriver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"kennel/edge/body/vector/spine"
)

// The factory's command line over the charging pad: test firmware of the body hands characters on in both directions, 32 a frame
// (VEC-CLI-01, 02, 04, part of VEC-CLI-03). A driver has none unless Config.Factory is set; robots at home never set it.

// FactoryWords are the known commands (part of VEC-CLI-03). The source only suggests their meaning, and their arguments are not known.
var FactoryWords = []string{"esn", "bsv", "mot", "get", "fcc", "rlg", "eng", "smr", "gmr", "pwr", "led"}

// FactoryCommand runs a command line and returns the reply, one line or several. It runs inside Driver.Read.
type FactoryCommand func(args []string) (reply string, err error)

// Own defaults: the longest line, and how much of a reply waits for the line to take it.
const (
	factoryLine  = 128
	factoryReply = 4096
)

// Factory is the head's end of the factory's command line. The zero value knows no command.
type Factory struct {
	// Commands by word. The driver adds bsv (version of the body), get (its newest frame) and pwr off (shut down) where there is none.
	Commands map[string]FactoryCommand

	line  []byte
	long  bool // the line of the moment is longer than it may be: it is dropped whole
	reply []byte
}

// feed takes characters from the pad, padded with NUL, and answers the lines that end in them. A line ends with CR or LF; it is a command if it
// starts with > and a word of FactoryWords. All else is passed over in silence: banners, echoes, noise.
func (c *Factory) feed(chars []byte) {
	for _, b := range chars {
		switch {
		case b == 0:
		case b == '\r' || b == '\n':
			if !c.long {
				c.run(c.line)
			}
			c.line, c.long = c.line[:0], false
		case len(c.line) == factoryLine:
			c.long = true
		default:
			c.line = append(c.line, b)
		}
	}
}

func (c *Factory) run(line []byte) {
	rest, found := bytes.CutPrefix(line, []byte(">"))
	if !found || len(rest) < 3 || len(rest) > 3 && rest[3] != ' ' {
		return
	}
	word := string(rest[:3])
	if !slices.Contains(FactoryWords, word) {
		return
	}
	reply, err := "", fmt.Errorf("%s is not available", word)
	if do := c.Commands[word]; do != nil {
		reply, err = do(strings.Fields(string(rest[3:])))
	}
	if err != nil {
		reply = "error: " + err.Error()
	}
	c.say("<" + word + " " + reply + "\r\n")
}

// say queues text for the pad. Text beyond the queue is lost, and NUL, which is padding, cannot be sent.
func (c *Factory) say(s string) {
	s = strings.ReplaceAll(s, "\x00", "?")
	c.reply = append(c.reply, s[:min(len(s), factoryReply-len(c.reply))]...)
}

// next moves up to 32 characters of the reply into m (VEC-CLI-04); false: there are none.
func (c *Factory) next(m *spine.Chars) bool {
	if len(c.reply) == 0 {
		return false
	}
	*m = spine.Chars{}
	n := copy(m[:], c.reply)
	c.reply = c.reply[:copy(c.reply, c.reply[n:])]
	return true
}

// factoryCommands adds the driver's own commands to c.
func (d *Driver) factoryCommands(c *Factory) *Factory {
	mine := &Factory{Commands: map[string]FactoryCommand{
		"bsv": func([]string) (string, error) {
			if !d.versionKnown {
				return "", fmt.Errorf("the body did not report its version")
			}
			return d.version.String(), nil
		},
		"get": func([]string) (string, error) {
			f := &d.frame
			return fmt.Sprintf("seq %d status %d fault %d %d motors %d %d %d %d cliffs %d battery %d charger %d temp %d power %d prox %d touch %d "+
				"button %d", f.Seq, f.Status,
				f.FaultDevice, f.FaultItem, f.Motors[0].Position, f.Motors[1].Position, f.Motors[2].Position, f.Motors[3].Position, f.Cliffs,
				f.BatteryRaw, f.ChargerRaw,
				f.Temperature, f.Power, f.ProxRange, f.Touch, f.Button), nil
		},
		"pwr": func(args []string) (string, error) {
			if len(args) != 1 || args[0] != "off" {
				return "", fmt.Errorf("want pwr off")
			}
			return "off", d.Shutdown()
		},
	}}
	for word, do := range c.Commands {
		mine.Commands[word] = do
	}
	return mine
}

// chars takes a frame of the pad's characters, if this is a factory.
func (d *Driver) chars(payload []byte) {
	var m spine.Chars
	if d.factory == nil || m.ParsePayload(payload) != nil {
		return
	}
	d.factory.feed(m[:])
	d.sayFactory()
}

// sayFactory sends the next frame of the factory command line's reply: one per call, because motors come first.
func (d *Driver) sayFactory() {
	if d.factory == nil {
		return
	}
	var m spine.Chars
	if d.factory.next(&m) {
		_ = d.send(m.AppendFrame(d.out[:0], spine.ToBody)) // a broken link shows in the next read
	}
}
