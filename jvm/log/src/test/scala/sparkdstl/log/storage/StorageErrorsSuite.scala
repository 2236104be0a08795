// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.fs.FileAlreadyExistsException
import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

class StorageErrorsSuite extends AnyFunSuite {

  /** Like S3A's service exceptions, it returns the status from a method. */
  class ServiceException(status: Int) extends IOException("service said no") {
    def statusCode(): Int = status
  }

  class RemoteFileChangedException extends IOException("changed")

  /** Has the name and the method of an exception of Google's client, as the connectors wrap it. */
  class GoogleJsonResponseException(status: Int) extends IOException("service said no") {
    def getStatusCode: Int = status
  }

  /** Has the name and the method of an exception of Google's newer client. */
  class StorageException(status: Int) extends RuntimeException("service said no") {
    def getCode: Int = status
  }

  private val taken = new FileAlreadyExistsException("x")
  private val denied = new AccessControlException("no")
  private val missing = new FileNotFoundException("x")
  private val tooLong = new IOException("/x: File name too long")

  private def service(statuses: Int*): Seq[IOException] = statuses.map(new ServiceException(_))

  private def google(status: Int): Seq[IOException] =
    Seq(new GoogleJsonResponseException(status), new StorageException(status)).map(wrapped)

  private def wrapped(error: Throwable): IOException = new IOException("wrapped", error)

  private def all(errors: Seq[Throwable])(holds: Throwable => Boolean): Unit =
    errors.foreach(error => assert(holds(error), error))

  test("the class, status or message of an error or its cause shows a conflict") {
    val told =
      new IOException("At least one of the pre-conditions did not hold (Service: S3, Status Code: 412, Request ID: 1)")
    val classes = Seq(taken, new java.nio.file.FileAlreadyExistsException("x"), new RemoteFileChangedException)
    all(classes ++ service(412) ++ Seq(told, wrapped(new ServiceException(412))) ++ google(412))(
      StorageErrors.meansAlreadyExists
    )
    all(
      service(503) ++ google(503) ++ Seq(new IOException("412 bytes missing"), missing)
    )(!StorageErrors.meansAlreadyExists(_))
  }

  test("a concurrent request is distinguished from a conflict") {
    assert(StorageErrors.meansConcurrentRequest(new ServiceException(409)))
    assert(!StorageErrors.meansAlreadyExists(new ServiceException(409)))
    assert(!StorageErrors.meansConcurrentRequest(new ServiceException(412)))
  }

  test("only passing errors are retried") {
    val lasting = Seq(taken, denied, new java.nio.file.AccessDeniedException("no"), new IllegalArgumentException("bad"))
    // The message of S3A's analytics streams.
    val inWords = "Server error accessing s3://b/x, request failed with: Access Denied. (Service: S3, Status Code: 403)"
    all(
      lasting ++ service(401) ++ google(403) ++ Seq(tooLong, new IOException(inWords), wrapped(denied))
    )(!StorageErrors.isRetryable(_))
    all(
      service(503) ++ Seq(missing, new IOException("reset"), new IOException(null: String))
    )(StorageErrors.isRetryable)
  }

  test("errors that need an operator are known by their class or their words") {
    val full = new IOException("No space left on device")
    val inWords = Seq(full, new IOException("/x: Read-only file system"))
    all(inWords ++ Seq(wrapped(full), new UnknownStoreException, new QuotaByStorageTypeExceededException))(
      StorageErrors.needsOperator
    )
    all(Seq(denied, new IOException("reset"), new IOException(null: String)))(!StorageErrors.needsOperator(_))
  }

  test("refusals by storage are definite") {
    val refusals = Seq(taken, denied, missing, tooLong, new UnsupportedOperationException, new AttemptNotMade("none"))
    all(refusals ++ service(400, 412) ++ google(400) :+ wrapped(new ServiceException(403)))(StorageErrors.isDefinite)
  }

  test("a missing answer or an answer about another request is not definite") {
    val none = Seq(new IOException("reset"), new java.io.InterruptedIOException, wrapped(missing), new OutOfMemoryError)
    all(none ++ service(500, 503, 408, 409, 429) ++ google(404) ++ google(410))(!StorageErrors.isDefinite(_))
  }

  /** Has the name and the status of the SDK's exception. */
  class NoSuchUploadException extends ServiceException(404)

  test("a missing upload is not definite: the client below may have completed it before it tried again") {
    // As S3A translates it.
    val translated = new FileNotFoundException("completion of a multipart upload")
    translated.initCause(new NoSuchUploadException)
    assert(!StorageErrors.isDefinite(translated) && StorageErrors.isRetryable(translated))
  }

  /** Has the name of S3A's exception. */
  class UnknownStoreException extends FileNotFoundException("no such bucket")

  /** Has the name of HDFS' exception. */
  class QuotaByStorageTypeExceededException extends IOException("Quota by storage type : DISK is exceeded")

  test("a missing bucket is not a missing object") {
    assert(StorageErrors.meansMissing(missing))
    all(Seq(new UnknownStoreException, new IOException("x")))(!StorageErrors.meansMissing(_))
  }
}
