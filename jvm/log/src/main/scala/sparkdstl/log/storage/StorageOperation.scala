// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import org.apache.hadoop.fs.Path

/** A kind of operation on storage, as metrics name it. */
sealed abstract class OperationKind(val name: String, val isWrite: Boolean)

object OperationKind {
  case object Put extends OperationKind("put", isWrite = true)
  case object Replace extends OperationKind("replace", isWrite = true)
  case object Create extends OperationKind("create", isWrite = true)
  case object Delete extends OperationKind("delete", isWrite = true)
  case object Read extends OperationKind("read", isWrite = false)
  case object ReadTail extends OperationKind("readTail", isWrite = false)
  case object ReadRange extends OperationKind("readRange", isWrite = false)
  case object Exists extends OperationKind("exists", isWrite = false)
  case object List extends OperationKind("list", isWrite = false)
  case object ListRecursively extends OperationKind("listRecursively", isWrite = false)

  val all: Seq[OperationKind] =
    Seq(Put, Replace, Create, Read, ReadTail, ReadRange, Exists, List, ListRecursively, Delete)
}

/**
 * An operation on storage as a value, with its name in errors. An [[ObjectStore]] makes single attempts at it;
 * [[sparkdstl.log.request.StorageClient]] makes requests with several attempts. `bytes` are sent or expected bytes, or the
 * number of deleted objects.
 */
sealed abstract class StorageOperation[A](val kind: OperationKind, name: => String, val bytes: Long = 0) {
  override def toString: String = name

  /** The answer that an attempt's error means; None if it is a failure. */
  def answerOf(error: Throwable): Option[A] = None
}

object StorageOperation {

  /** A read of one object; `None` if it does not exist: then an attempt fails with `FileNotFoundException`. */
  sealed abstract class ReadOperation[A](kind: OperationKind, name: => String, bytes: Long)
      extends StorageOperation[Option[A]](kind, name, bytes) {
    override def answerOf(error: Throwable): Option[Option[A]] =
      Option.when(StorageErrors.meansMissing(error))(None)
  }

  /** Publishes at a name that no other writer uses. It is idempotent, even if it takes effect late. */
  final case class Put(path: Path, content: Payload)
      extends StorageOperation[Unit](OperationKind.Put, s"put of $path", content.length) {

    /** An existing object comes from an earlier attempt. */
    override def answerOf(error: Throwable): Option[Unit] = Option.when(StorageErrors.meansAlreadyExists(error))(())
  }

  /** Publishes, and replaces an existing object; see [[StorageTraits.replacesAtomically]]. */
  final case class Replace(path: Path, content: Payload)
      extends StorageOperation[Unit](OperationKind.Replace, s"replacement of $path", content.length)

  /**
   * Publishes if no object exists. The answer is `None`, or the error with which storage refused it: then an attempt fails with
   * Hadoop's `FileAlreadyExistsException`. The existing object may be the caller's own, if a client below retried after a lost
   * reply: only the content shows its writer.
   */
  final case class Create(path: Path, content: Payload)
      extends StorageOperation[Option[Throwable]](OperationKind.Create, s"creation of $path", content.length) {
    override def answerOf(error: Throwable): Option[Option[Throwable]] =
      Option.when(StorageErrors.meansAlreadyExists(error) || StorageErrors.meansConcurrentRequest(error))(Some(error))
  }

  /**
   * A trial whether only one of two concurrent creations succeeds, at a name that no other writer uses. The creations overlap,
   * because a client that checks before it overwrites also refuses the second of two sequential ones. May leave an object.
   */
  final case class TryCreation(path: Path)
      extends StorageOperation[Boolean](OperationKind.Create, "trial of exclusive creation")

  /** The whole object. Fails if it is longer than `maxLength`. */
  final case class Read(path: Path, maxLength: Long)
      extends ReadOperation[Array[Byte]](OperationKind.Read, s"read of $path", maxLength)

  /** The last `maxLength` bytes, or all of a shorter object. */
  final case class ReadTail(path: Path, maxLength: Int)
      extends ReadOperation[ObjectTail](OperationKind.ReadTail, s"read of the end of $path", maxLength.toLong)

  /** Exactly `length` bytes; fails with `EOFException` if the object ends before. */
  final case class ReadRange(path: Path, offset: Long, length: Int)
      extends ReadOperation[Array[Byte]](
        OperationKind.ReadRange,
        s"read of $length bytes from $offset of $path",
        length.toLong
      )

  /** The objects directly in `directory`, in no order; none if the directory is missing. */
  final case class ListObjects(directory: Path)
      extends StorageOperation[Seq[StoredObject]](OperationKind.List, s"listing of $directory")

  /**
   * The objects in `directory` and below, and unpublished files and empty directories, in no order; none if the directory is
   * missing.
   */
  final case class ListRecursively(directory: Path)
      extends StorageOperation[Seq[StoredObject]](OperationKind.ListRecursively, s"listing of $directory and below")

  /** Deletes objects and empty directories, in as few requests as storage allows. Ignores missing ones, and fails only after it has tried all. */
  final case class Delete(paths: Seq[Path])
      extends StorageOperation[Unit](
        OperationKind.Delete,
        s"deletion of ${paths.head}${if (paths.size > 1) s" and ${paths.size - 1} more" else ""}",
        paths.size.toLong
      )
}
