// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

/**
 * A client of an object store without conditional writes: it checks for the object when a stream is opened, and replaces
 * it when the stream is closed.
 */
final class LookingFirstFileSystem extends DirectWriteFileSystem(LookingFirstFileSystem.Scheme) {
  override protected def createsExclusively: Boolean = false
}

object LookingFirstFileSystem extends FileSystemScheme("looking", classOf[LookingFirstFileSystem])
