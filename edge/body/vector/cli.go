package vector

import (
	"context"
	"os"

	"kennel/edge/body/vector/factory/emr"
	"kennel/edge/body/vector/vectordriver"
	"kennel/infra/logging"
)

// openFactory makes the head's end of the factory's command line (part of VEC-CLI-03). On every robot at home it is off (VEC-CLI-01, part of VEC-STOR-05): that is no
// error, one that was asked for and is refused neither.
func (v *parts) openFactory(ctx context.Context) error {
	if !v.flags.factory {
		return nil
	}
	root, err := os.OpenRoot(v.Root)
	var rec emr.Record
	if err == nil {
		defer root.Close() // read only
		rec, err = emr.Read(root)
	}
	if err != nil || !emr.FactoryMode(rec, v.flags.factory) {
		v.Log.WarnContext(ctx, "factory command line disabled; robot has left the factory", logging.Err, err)
		return err
	}
	v.Log.WarnContext(ctx, "factory command line open on the charging pad")
	v.cli = &vectordriver.Factory{Commands: map[string]vectordriver.FactoryCommand{
		"esn": func([]string) (string, error) { return rec.Serial(), nil },
	}}
	return nil
}
