def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    reference = data.get("gt") if reference is None else reference
    if reference is None:
        return None
    items = reference if isinstance(reference, list) else [reference]
    text = resp.content.casefold()
    return all(str(item).strip().casefold() in text for item in items)
