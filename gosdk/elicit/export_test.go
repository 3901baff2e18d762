package elicit

import "reflect"

// KeptForms returns how many forms with options are kept for the struct T, and how many bytes their
// schemas have together.
func KeptForms[T any]() (forms, size int) {
	kept, _ := optionForms.Load(reflect.TypeFor[T]())
	known, _ := kept.([]*form)
	for _, f := range known {
		size += len(f.text)
	}
	return len(known), size
}

// SchemaOf returns the schema of a form, or an error, as text.
func SchemaOf[T any](options ...FormOption) string {
	f, err := formOf[T](options)
	if err != nil {
		return err.Error()
	}
	return string(f.text)
}
