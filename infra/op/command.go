package op

// Command is a command of kennelctl that does one operation. Its texts are templates of text/template over the answer, whose times print as how long ago
// they were and whose lists print with commas; arguments are there under their names in capitals.
type Command struct {
	// Use has the words of the command, then what a person gives:
	//
	//	ALERT, [OF], TAG...   arguments: first those of the path, in its order, then fields of their names; [ADDRESS...]=to names another field
	//	-limit=20, -why!      flags of fields, with what they are if not given, or needed; -kind:kinds names another field
	//	-none?                instead of the last argument
	//	-bundle@              a flag with the name of a file, which holds the field
	//	state:=open           a field, or a part of the path, that a person does not choose
	//
	// Without any, the arguments are the parts of the path, and then KEY=VALUE for each field.
	Use string `json:"use"`
	// Short is one line; "": the Summary of the operation. Long comes after it. Example holds command lines without the program's name; there is always one.
	Short   string `json:"short,omitempty"`
	Long    string `json:"long,omitempty"`
	Example string `json:"example,omitempty"`
	// Table draws the answer: columns with "; " between them, each a head that is a field too (LAST SEEN), or HEAD=.template, or =text for a line outside of the
	// columns. A list is a table, an object lines of names and values; a head that ends in ? is left out where it has no value. A further line is drawn below;
	// "history: ..." draws that part of the answer.
	Table string `json:"table,omitempty"`
	Says  string `json:"says,omitempty"` // instead of a table: what was done, in a line
	Done  string `json:"done,omitempty"` // what -o json prints where the operation answers nothing; "": {"done":true}
	Asks  string `json:"asks,omitempty"` // a question before it is done, unless -yes is given
}

// With returns s with commands of kennelctl.
func (s Spec) With(commands ...Command) Spec {
	s.Commands = append(s.Commands[:len(s.Commands):len(s.Commands)], commands...)
	return s
}
