"""The fire drill of a judge: known defects planted in answers, judged beside the untouched answer."""
