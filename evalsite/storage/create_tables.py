"""The operation of migrations that creates the tables of a fresh database."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateTables(Operation):
    """What `operations` would create, as the last of them leaves it; they may only create and add.

    Django renders all related models anew after each operation, so their cost grows with the square of their number:
    150 of them take 8 s one by one and 1 s as one.
    """

    reduces_to_sql = True
    reversible = False

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """See Operation."""
        return self.__class__.__qualname__, [], {"operations": self.operations}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Change the state; its models are rendered when they are next asked for."""
        vars(state).pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Create the tables with all their columns, indexes and constraints."""
        for operation in self.operations:
            if isinstance(operation, CreateModel):
                schema_editor.create_model(to_state.apps.get_model(app_label, operation.name))

    def describe(self) -> str:
        """See Operation."""
        return f"Create tables by {len(self.operations)} operations"
