package amigobot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/sysmode"
	"kennel/edge/body/port"
	"kennel/jdocs"
)

// ParametersDocument is the document with the parameters of an AmigoBot (AMIGO-FLASH-01 to 37): numbers, and texts for Type, Subtype, Serial
// and Name.
const ParametersDocument = "amigo.Parameters"

// ErrTools is the error of Store for a robot that is not in System mode.
var ErrTools = errors.New("robot not in System mode: hold its black button, press and release Reset, then release the black button")

// Parameters is the memory of the parameters of one robot, behind its System port.
type Parameters struct {
	Device string // of the System port, as Config.Device
	Serial string // that the robot left its factory with
}

// Document returns the document's name, and the parameters of a new robot.
func (p Parameters) Document() (jdocs.Name, map[string]json.RawMessage) {
	v := flash.Defaults()
	if v.SetSerial(p.Serial) != nil {
		v = flash.Defaults() // a serial number that AmigOS cannot have
	}
	return ParametersDocument, encode(&v)
}

// Check returns a value as the robot holds it. It refuses constants and values out of range (AMIGO-CF-04, AMIGO-CF-05).
func (p Parameters) Check(parameter string, given json.RawMessage) (json.RawMessage, error) {
	k, err := flash.Lookup(parameter)
	if err != nil {
		return nil, err
	}
	if k.String() != parameter {
		return nil, fmt.Errorf("unknown parameter %.40q; did you mean %s?", parameter, k)
	}
	v := flash.Defaults()
	if err := v.Set(parameter, text(given)); err != nil {
		return nil, err
	}
	return encode(&v)[parameter], nil
}

// Store stores values, all or none; the robot then resets and uses them (AMIGO-CF-10). It returns ErrTools for a robot that is not in System mode.
func (p Parameters) Store(ctx context.Context, values map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	line, err := port.Open(ctx, p.Device, DefaultBaud, false)
	if err != nil {
		return nil, fmt.Errorf("port %s: %w", p.Device, err)
	}
	defer line.Close() // all writes are acknowledged
	client := sysmode.NewClient(line)
	if _, err := client.Hello(ctx); err != nil {
		if errors.Is(err, sysmode.ErrSilent) {
			err = ErrTools
		}
		return nil, err
	}
	v, err := client.Params(ctx)
	if err != nil {
		return nil, err
	}
	for name, value := range values {
		if err := v.Set(name, text(value)); err != nil {
			return nil, err
		}
	}
	if err := client.Save(ctx, &v); err != nil {
		return nil, err
	}
	_ = client.Leave(ctx) // all is stored; a robot that did not hear it is reset by its button
	return encode(&v), nil
}

func encode(v *flash.Values) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for k := range flash.Count {
		all[k.String()] = json.RawMessage(v.Value(k))
		if k.Param().Kind == flash.Text {
			all[k.String()], _ = json.Marshal(v.Value(k)) // a string
		}
	}
	return all
}

// text returns the text of a JSON string, or a number as it is written.
func text(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}
